"""What a handler may be, and what its answers mean."""

import asyncio
import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.client.group.listeners import is_coroutine_function
from pocketmq.client.push import handlers
from pocketmq.errors import InvalidInput
from pocketmq.protocol import ReceivedMessage
from tests.client.push.stands import messages


async def acts(message: object) -> None: ...


def forwards(message: object) -> object:
    return acts(message)


def does(message: object) -> None: ...


class Acting:
    async def __call__(self, message: object) -> None: ...

    async def method(self, message: object) -> None: ...

    def plain(self, message: object) -> None: ...


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (acts, True),
        (functools.partial(acts), True),
        (functools.partial(functools.partial(acts)), True),
        (Acting(), True),
        (Acting().method, True),
        (functools.partial(Acting()), True),
        (does, False),
        (functools.partial(does), False),
        (Acting().plain, False),
        ([].append, False),
        (print, False),
        (forwards, False),
    ],
)
def test_coroutine_functions_are_known_in_every_wrapping(
    function: Callable[..., Any], expected: bool
) -> None:
    assert is_coroutine_function(function) is expected


def test_only_what_can_be_called_is_a_handler() -> None:
    with pytest.raises(InvalidInput, match="a handler must be a function"):
        handlers.TopicHandler("orders", "print")  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", [None, handlers.Consumed.OK])
def test_none_and_ok_mean_done(answer: handlers.Consumed | None) -> None:
    assert handlers.Handler(lambda message: answer).call(messages(1)) is None
    assert handlers.understood(answer) is None


def test_retry_and_its_details_mean_again() -> None:
    assert handlers.understood(handlers.Consumed.RETRY) == handlers.Failure(
        "handler returned RETRY", requested=True
    )
    later = handlers.understood(handlers.RetryLater(3, wait=0.5, done=2))
    assert later == handlers.Failure(
        "handler requested a retry (RetryLater)", None, 3, 0.5, 2, requested=True
    )


def test_an_answer_may_be_raised() -> None:
    def handler(message: ReceivedMessage) -> None:
        raise handlers.RetryLater(4)

    assert handlers.Handler(handler).call(messages(1)) == handlers.Failure(
        "handler requested a retry (RetryLater)", delay_level=4, requested=True
    )


def test_an_error_means_again_and_is_kept() -> None:
    mistake = ValueError("bad")

    def handler(message: ReceivedMessage) -> None:
        raise mistake

    assert handlers.Handler(handler).call(messages(1)) == handlers.Failure(
        "handler raised ValueError: bad", mistake
    )


class Unshowable(Exception):
    def __str__(self) -> str:
        raise ValueError("no")

    __repr__ = __str__


class Rare(BaseException): ...


async def test_nothing_a_handler_does_reaches_its_caller() -> None:
    """It would end the thread or the task that has to make the next call."""
    reasons = []
    for error in (Unshowable(), Rare("x"), GeneratorExit(), asyncio.CancelledError()):

        def handler(message: ReceivedMessage, error: BaseException = error) -> None:
            raise error

        async def coro(message: ReceivedMessage, error: BaseException = error) -> None:
            raise error

        failure = handlers.Handler(handler).call(messages(1))
        assert failure is not None
        reasons.append(failure.reason)
        if not isinstance(error, GeneratorExit | asyncio.CancelledError):
            assert await handlers.Handler(coro).call_async(messages(1)) == failure
    assert reasons == [
        "handler raised Unshowable: something that cannot be shown",
        "handler raised Rare: x",
        "handler raised GeneratorExit: ",
        "handler raised CancelledError: ",
    ]
    failure = handlers.Handler(lambda message: Unshowable()).call(messages(1))
    assert failure is not None
    assert "something that cannot be shown" in failure.reason


def test_an_answer_that_makes_no_sense_is_an_error_of_the_handler() -> None:
    for wrong in ({"delay_level": "3"}, {"wait": -1.0}, {"wait": float("nan")}, {"done": -1}):
        with pytest.raises(InvalidInput):
            handlers.RetryLater(**wrong)


@pytest.mark.parametrize("answer", [0, False, True, "OK", 17, object()])
def test_what_is_no_answer_means_again_and_says_what_to_return(answer: object) -> None:
    """A wrong answer must not count as done: the message would be lost."""
    failure = handlers.Handler(lambda message: answer).call(messages(1))
    assert failure is not None
    assert failure.reason.startswith("handler returned ")
    assert "Consumed.OK" in failure.reason


def test_a_coroutine_that_nobody_awaits_is_closed_and_explained() -> None:
    failure = handlers.Handler(forwards).call(messages(1))  # warnings are errors here
    assert failure is not None
    assert "async def" in failure.reason


def test_one_message_or_a_list_of_its_own() -> None:
    seen: list[object] = []

    def emptying(given: list[ReceivedMessage]) -> None:
        seen.append(list(given))
        given.clear()

    three = messages(3)
    handlers.Handler(seen.append).call(three[:1])
    handlers.Handler(emptying, batch=True).call(three)
    assert seen == [three[0], three]
    assert len(three) == 3


async def test_coroutines_answer_alike() -> None:
    async def done(message: ReceivedMessage) -> None: ...

    async def again(message: ReceivedMessage) -> handlers.Consumed:
        return handlers.Consumed.RETRY

    async def fails(message: ReceivedMessage) -> None:
        raise OSError("gone")

    async def later(message: ReceivedMessage) -> None:
        raise handlers.RetryLater(5)

    answers = [
        await handlers.Handler(f).call_async(messages(1)) for f in (done, again, fails, later)
    ]
    reasons = [None if answer is None else answer.reason for answer in answers]
    assert reasons == [
        None, "handler returned RETRY", "handler raised OSError: gone", "handler requested a retry (RetryLater)",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "SystemExit"])
def test_an_interrupt_in_a_pools_thread_reaches_the_main_thread(kind: str) -> None:
    """A thread would swallow it, and Ctrl-C would do nothing."""
    program = f"""
import threading, time
from pocketmq.client.push.handlers import Handler
def handler(message):
    raise {kind}
answers = []
thread = threading.Thread(target=lambda: answers.append(Handler(handler).call([1])))
try:
    thread.start()
    thread.join()
    time.sleep(30)
except KeyboardInterrupt:
    thread.join()
    print(answers[0].reason)
"""
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True
    )
    assert shown.stdout == f"handler raised {kind}, which stops the program\n"
