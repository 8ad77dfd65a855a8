"""Interceptors of a producer: once for each message, in the caller's context, before encoding."""

import asyncio
import contextvars
import gc
import inspect
import logging
import weakref
from typing import Any

import pytest

import pocketmq as mq
from pocketmq import aio
from pocketmq.client.interceptors import SendCall, SendKind
from pocketmq.client.producer.producer import Producer
from pocketmq.errors import ClientClosed, InvalidInput, SendFailed
from pocketmq.model import Message, TransactionState
from pocketmq.protocol import Command
from pocketmq.protocol.batch import decode_batch
from pocketmq.protocol.property_text import decode_properties
from tests.client.producer.stage import refuses, stage, stores
from tests.loops import until

MESSAGE = Message("orders", b"42 EUR", tag="paid", properties={"region": "eu"})
PLAIN = Message("orders", b"42 EUR")
shopper = contextvars.ContextVar("shopper", default="nobody")


class Watching:
    """Remembers calls and their ends, and stamps each message with the caller's context."""

    def __init__(self, name: str = "shopper") -> None:
        self.began: list[SendCall] = []
        self.ended: list[SendCall] = []
        self.errors: list[BaseException | None] = []
        self.name = name

    def __call__(self, call: SendCall) -> Any:
        assert (call.error, call.receipts) == (None, ())
        self.began.append(call)
        for at in range(len(call.messages)):
            call.add_properties({self.name: shopper.get()}, at)
        return self.end

    def end(self, call: SendCall) -> None:
        self.ended.append(call)
        self.errors.append(call.error)


def sent(request: Command) -> dict[str, str]:
    return decode_properties(request.ext["i"].encode())


async def test_a_message_is_intercepted_once_whatever_the_number_of_its_tries() -> None:
    watching = Watching()
    says = {"broker-a": refuses(1), "broker-b": stores}
    async with stage(says, interceptors=[watching]) as on:
        await on.begin_with(0)
        shopper.set("ada")
        receipt = await on.producer.send(MESSAGE)
        assert on.asked == {"broker-a": 1, "broker-b": 1}
        (call,) = watching.ended
        assert (call.group, call.kind, call.receipts) == ("shop", SendKind.SEND, (receipt,))
        for broker in on.brokers.values():
            properties = sent(broker.sends[0])
            assert (properties["shopper"], properties["region"]) == ("ada", "eu")
            assert properties["TAGS"] == "paid"


async def test_the_first_interceptor_begins_first_and_ends_last() -> None:
    order: list[str] = []

    def named(name: str) -> Any:
        def interceptor(call: SendCall) -> Any:
            order.append(f"{name} begins")
            return lambda call: order.append(f"{name} ends")

        return interceptor

    async with stage(interceptors=[named("a"), lambda call: None, named("b")]) as on:
        await on.producer.send(PLAIN)
    assert order == ["a begins", "b begins", "b ends", "a ends"]


async def test_every_way_to_send_is_intercepted() -> None:
    watching = Watching()
    async with stage({"broker-a": stores}, interceptors=[watching], linger=None) as on:
        producer = on.producer
        one = await producer.send(message=PLAIN)
        two = await producer.submit(PLAIN, ordering_key="a")
        await producer.send_oneway(PLAIN)
        batch = await producer.send_batch([PLAIN, PLAIN])
        split = await producer.send_batch([PLAIN, PLAIN], split=True)
        told = await producer.send_in_transaction(PLAIN, lambda *_: TransactionState.COMMIT)
        task = asyncio.create_task(producer.request(PLAIN, 30.0))
        await until(lambda: len(on.brokers["broker-a"].sends) == 7, "the request")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [call.kind for call in watching.ended] == [
        SendKind.SEND, SendKind.SUBMIT, SendKind.ONEWAY, SendKind.BATCH, SendKind.BATCH,
        SendKind.TRANSACTION, SendKind.REQUEST,
    ]  # fmt: skip
    receipts = [call.receipts for call in watching.ended]
    assert receipts == [(one,), (two,), (), (batch,), tuple(split), (told,), ()]
    assert isinstance(watching.errors[-1], asyncio.CancelledError)
    assert watching.errors[:-1] == [None] * 6
    requests = on.brokers["broker-a"].sends
    assert sent(requests[0])["shopper"] == "nobody"
    entries = decode_batch(requests[3].body)
    assert [b"shopper\1nobody" in entry.property_bytes for entry in entries] == [True] * 2


async def test_plain_messages_that_no_interceptor_changes_still_take_the_short_way() -> None:
    seen: list[SendCall] = []
    async with stage(interceptors=[seen.append]) as on:
        await on.producer.send(PLAIN)
        posted, post = [], on.producer.sending.plain.post

        def counted(message: Message, delay_level: int | None = None) -> Any:
            posted.append(post(message, delay_level))
            return posted[-1]

        on.producer.sending.plain.post = counted  # type: ignore[method-assign]
        await on.producer.send(PLAIN)
        assert len(posted) == 1
        assert posted[0] is not None
        assert len(seen) == 2


async def test_a_failed_send_ends_with_its_error_and_leaves_nothing_behind() -> None:
    watching = Watching()
    async with stage({"broker-a": refuses(13)}, interceptors=[watching], retries=0) as on:
        with pytest.raises(SendFailed) as failed:
            await on.producer.send(PLAIN)
        assert watching.errors == [failed.value]
        future = on.producer.submit(PLAIN)
        with pytest.raises(SendFailed) as failed:
            await future
        assert watching.errors[1] is failed.value
    with pytest.raises(ClientClosed):
        await on.producer.send(PLAIN)
    assert isinstance(watching.errors[2], ClientClosed)


async def test_the_error_of_a_failed_send_is_part_of_no_reference_cycle() -> None:
    kept: list[SendCall] = []
    interceptors = [lambda call: kept.append]
    producers: list[Any] = [
        kind("127.0.0.1:1", group="shop", interceptors=interceptors)
        for kind in (aio.Producer, mq.Producer)
    ]
    gc.collect()
    gc.disable()
    try:
        for producer in producers:
            try:
                sending = producer.send(PLAIN)
                await sending
            except ClientClosed as error:
                gone = weakref.ref(error)
            assert gone() is None
    finally:
        gc.enable()


async def test_what_an_interceptor_raises_stops_the_send() -> None:
    watching = Watching()

    def refusing(call: SendCall) -> None:
        raise ValueError("no region")

    async with stage(interceptors=[watching, refusing]) as on:
        with pytest.raises(ValueError, match="no region") as failed:
            await on.producer.send(MESSAGE)
        assert watching.errors == [failed.value]
        assert on.asked == {"broker-a": 0, "broker-b": 0}


async def test_what_the_end_of_an_interceptor_raises_is_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def failing(call: SendCall) -> Any:
        def end(call: SendCall) -> None:
            raise ValueError("too late")

        return end

    watching = Watching()
    async with stage(interceptors=[watching, failing]) as on:
        with caplog.at_level(logging.ERROR, "pocketmq.client"):
            receipt = await on.producer.send(MESSAGE)
        assert watching.ended[0].receipts == (receipt,)
    assert "interceptor failed after a call" in caplog.text
    assert "too late" in caplog.text


def test_properties_are_added_to_all_else_that_a_message_has() -> None:
    message = Message("t", b"x", "tag", ["key"], {"a": "1"}, 7, 3)
    call = SendCall("shop", SendKind.SEND, [message])
    call.add_properties({"b": "2"})
    assert call.message == Message("t", b"x", "tag", ["key"], {"a": "1", "b": "2"}, 7, 3)


async def test_an_interceptor_may_replace_the_message() -> None:
    def hide(call: SendCall) -> None:
        call.messages[0] = Message(call.message.topic, call.message.body[::-1])

    async with stage({"broker-a": stores}, interceptors=[hide]) as on:
        await on.producer.send(MESSAGE)
        (request,) = on.brokers["broker-a"].sends
        assert request.body == b"RUE 24"
        with pytest.raises(InvalidInput, match="reserved"):
            SendCall("shop", SendKind.SEND, [MESSAGE]).add_properties({"TAGS": "x"})


async def test_mistakes_are_named_as_without_interceptors() -> None:
    wrong: Any = "orders"
    async with stage(interceptors=[Watching()]) as on:
        for call in (on.producer.send(wrong), on.producer.send_batch([wrong])):
            with pytest.raises(InvalidInput):
                await call
        with pytest.raises(InvalidInput):
            await on.producer.send_batch([])
        assert inspect.signature(on.producer.send) == inspect.signature(
            Producer("127.0.0.1:1", group="shop").send
        )
        assert inspect.iscoroutinefunction(on.producer.send)
        nothing_runs: Any = on.producer.send(MESSAGE)
        nothing_runs.close()
        assert on.asked == {"broker-a": 0, "broker-b": 0}


async def test_an_interceptor_is_a_plain_function_that_returns_one_or_nothing() -> None:
    async def coroutine(call: SendCall) -> None: ...

    for wrong in (coroutine, "timing"):
        given: Any = [wrong]
        with pytest.raises(InvalidInput, match="an interceptor must be a plain function"):
            aio.Producer("127.0.0.1:9876", group="shop", interceptors=given)
    alone: Any = print
    with pytest.raises(InvalidInput, match="interceptors must be a list of functions"):
        aio.Producer("127.0.0.1:9876", group="shop", interceptors=alone)
    returns_text: Any = lambda call: "done"  # noqa: E731
    async with stage(interceptors=[returns_text]) as on:
        with pytest.raises(InvalidInput, match="an interceptor must return None, or a function"):
            await on.producer.send(MESSAGE)
