"""Interceptors around handlers: in the handler's thread or task, and what they can do to it."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pocketmq import Consumed, RetryLater, aio
from pocketmq.client.interceptors import HandlerCall
from pocketmq.client.push.handlers import Handler
from pocketmq.client.push.wrapping import intercepted
from pocketmq.errors import InvalidInput
from tests.client.push.stands import messages

trace = contextvars.ContextVar("trace", default="")
MESSAGES = messages(3)


class Spanning:
    """Sets a variable around the handler, and remembers what came of it."""

    def __init__(self) -> None:
        self.calls: list[HandlerCall] = []
        self.outcomes: list[tuple[object, str]] = []

    def __call__(self, call: HandlerCall) -> Callable[[HandlerCall], object]:
        self.calls.append(call)
        token = trace.set(f"{call.group}/{call.topic}/{len(call.messages)}")

        def end(call: HandlerCall) -> None:
            trace.reset(token)  # raises in another context
            self.outcomes.append((call.result, repr(call.error)))

        return end


def wrapped(function: Any, *interceptors: Any, batch: bool = False) -> Handler:
    made = intercepted(function, interceptors, group="billing", topic="orders", batch=batch)
    return Handler(made, batch=batch)


def test_a_plain_handler_runs_inside_its_interceptors_in_its_thread() -> None:
    spanning, seen = Spanning(), list[tuple[str, int]]()

    def handle(message: object) -> Consumed:
        seen.append((trace.get(), threading.get_ident()))
        return Consumed.OK

    handler = wrapped(handle, spanning)
    assert not handler.is_async
    assert handler.call(MESSAGES[:1]) is None
    assert seen == [("billing/orders/1", threading.get_ident())]
    assert spanning.outcomes == [(Consumed.OK, "None")]
    assert list(spanning.calls[0].messages) == list(MESSAGES[:1])
    assert trace.get() == ""


async def test_coroutine_handlers_keep_their_own_context_side_by_side() -> None:
    spanning, seen = Spanning(), list[str]()
    both = asyncio.Barrier(2)

    async def handle(some: list[object]) -> None:
        await both.wait()
        seen.append(trace.get())
        some.clear()  # a handler may do with its list what it likes

    handler = wrapped(handle, spanning, batch=True)
    assert handler.is_async
    await asyncio.gather(handler.call_async(MESSAGES[:1]), handler.call_async(MESSAGES))
    assert sorted(seen) == ["billing/orders/1", "billing/orders/3"]
    assert spanning.outcomes == [(None, "None")] * 2
    assert sorted(len(call.messages) for call in spanning.calls) == [1, 3]


async def test_an_error_is_seen_and_passed_on() -> None:
    spanning = Spanning()

    def fails(message: object) -> None:
        raise RetryLater(5)

    async def fails_too(message: object) -> None:
        raise ValueError("no price")

    failure = wrapped(fails, spanning).call(MESSAGES[:1])
    assert failure is not None
    assert failure.delay_level == 5
    failure = await wrapped(fails_too, spanning).call_async(MESSAGES[:1])
    assert failure is not None
    assert isinstance(failure.error, ValueError)
    assert [error for _, error in spanning.outcomes] == [
        "RetryLater(5, None, 0)",
        "ValueError('no price')",
    ]


def test_an_interceptor_that_raises_keeps_the_handler_from_being_called() -> None:
    called: list[object] = []

    def refusing(call: HandlerCall) -> None:
        raise PermissionError("closed on Sundays")

    failure = wrapped(called.append, Spanning(), refusing).call(MESSAGES[:1])
    assert failure is not None
    assert isinstance(failure.error, PermissionError)
    assert called == []
    assert trace.get() == ""


def test_a_handler_without_interceptors_is_left_as_it_is() -> None:
    assert intercepted(print, (), group="g", topic="t", batch=False) is print


def test_a_wrong_handler_or_interceptor_is_refused_at_once() -> None:
    consumer = aio.PushConsumer("127.0.0.1:9876", group="billing", interceptors=[Spanning()])
    not_callable: Any = 7
    with pytest.raises(InvalidInput, match="a handler must be a function"):
        consumer.subscribe("orders", "*", not_callable)
    with pytest.raises(InvalidInput, match="a handler must take one argument"):
        consumer.subscribe("orders", "*", lambda: None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="an interceptor must be a plain function"):
        aio.PushConsumer("127.0.0.1:9876", group="billing", interceptors=[not_callable])
