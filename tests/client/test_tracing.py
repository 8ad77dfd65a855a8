"""Traces are gathered, sent in the background, and never in the way."""

import asyncio
import logging
from collections import deque

import msgspec
import pytest

from pocketmq.client import tracing
from pocketmq.client.tasks import Tasks
from pocketmq.client.tracing import INTERVAL, LARGEST, MOST_WAITING, SEND_FROM, Tracer, pack
from pocketmq.errors import RouteNotFound
from pocketmq.model import Message
from pocketmq.protocol.property_text import LIMIT, encode_properties
from pocketmq.protocol.trace_text import Traced, TracedSend, decode_traced
from tests.loops import leap, leaping, until


def event(number: int, keys: str | None = None) -> TracedSend:
    return TracedSend(
        time_ms=1, region="r", group="g", topic="t", message_id=f"M{number}", keys=keys
    )


class Sink:
    """Takes traces once it is open, or fails."""

    def __init__(self, *, is_open: bool = True, fails: bool = False) -> None:
        self.messages: list[Message] = []
        self.fails = fails
        self.opened = asyncio.Event()
        if is_open:
            self.opened.set()

    async def send(self, message: Message) -> None:
        await self.opened.wait()
        if self.fails:
            raise RouteNotFound(message.topic)
        self.messages.append(message)

    @property
    def events(self) -> list[Traced]:
        return [each for message in self.messages for each in decode_traced(message.body.decode())]


@leaping
async def test_a_few_records_wait_for_others_and_many_do_not() -> None:
    sink = Sink()
    tracer = Tracer("traces", sink.send, Tasks("test"))
    tracer.add(event(1))
    await leap(INTERVAL - 1)
    assert sink.messages == []
    tracer.add(event(2))
    await leap(1.5)
    assert sink.events == [event(1), event(2)]
    assert [list(message.keys) for message in sink.messages] == [["M1", "M2"]]
    tracer.add(*[event(number) for number in range(SEND_FROM)])
    await until(lambda: len(sink.messages) == 2, "the second message")
    assert sink.events[2:] == [event(number) for number in range(SEND_FROM)]
    await tracer.close()
    assert tracer.dropped == 0


async def test_close_sends_what_waits_and_takes_no_more() -> None:
    sink = Sink()
    tracer = Tracer("traces", sink.send, Tasks("test"))
    tracer.add(event(1))
    await tracer.close()
    assert sink.events == [event(1)]
    tracer.add(event(2), event(3))
    await tracer.close()
    assert (len(tracer), tracer.dropped) == (0, 2)


async def test_close_waits_only_so_long() -> None:
    sink = Sink(is_open=False)
    tracer = Tracer("traces", sink.send, Tasks("test"))
    tracer.add(*[event(number) for number in range(SEND_FROM)])
    await asyncio.sleep(0)
    tracer.add(event(99))
    await tracer.close(0.01)
    assert tracer.dropped == SEND_FROM + 1


async def test_what_finds_no_room_is_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """One line tells of it, not one for each."""
    sink = Sink(is_open=False)
    tracer = Tracer("traces", sink.send, Tasks("test"))
    with caplog.at_level(logging.WARNING):
        tracer.add(*[event(number) for number in range(MOST_WAITING - 1)])
        tracer.add(event(1), event(2), event(3))
        tracer.add(event(4))
    assert (len(tracer), tracer.dropped) == (MOST_WAITING, 3)
    assert caplog.messages == [
        "trace records dropped: topic=traces total=2 error=too many are waiting"
    ]
    sink.opened.set()
    await tracer.close()
    assert len(sink.events) == MOST_WAITING
    assert tracer.dropped == 3


async def test_what_no_broker_takes_is_dropped_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = Sink(fails=True)
    tracer = Tracer("traces", sink.send, Tasks("test"))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            tracer.add(*[event(number) for number in range(SEND_FROM)])
            await until(lambda: not len(tracer), "an empty queue")
    sink.fails = False
    tracer.add(event(7))
    await tracer.close()
    assert tracer.dropped == 3 * SEND_FROM
    assert sink.events == [event(7)]
    assert len(caplog.messages) == 1


def test_one_message_holds_so_much_and_the_next_one_the_rest() -> None:
    waiting: deque[Traced] = deque(event(number, "k" * 500) for number in range(500))
    sizes = []
    while waiting:
        body, keys, count = pack(waiting)
        assert len(body) <= LARGEST
        assert len(keys) == count + 1
        sizes.append(count)
    assert sum(sizes) == 500
    assert len(sizes) > 1


def test_keys_never_outgrow_a_messages_properties() -> None:
    words = " ".join(f"ключ-{number}" for number in range(700))
    waiting: deque[Traced] = deque(event(number, f"{words} {number}") for number in range(9))
    waiting.append(event(9, "я" * 40_000))
    found: list[str] = []
    while waiting:
        _, keys, _ = pack(waiting)
        message = Message("traces", b"x", keys=keys)
        assert len(encode_properties(message.wire_properties())) < LIMIT - 1000
        found += keys
    assert {f"M{number}" for number in range(10)} <= set(found)
    assert "я" * 40_000 not in found


def test_an_id_that_is_no_key_does_not_stop_the_trace() -> None:
    odd = msgspec.structs.replace(event(1), message_id=" ", keys=None)
    body, keys, count = pack(deque([odd, event(2)]))
    assert (keys, count) == (["M2"], 2)
    assert len(decode_traced(body.decode())) == 2


async def test_traces_are_not_traced() -> None:
    tracer = Tracer("traces", Sink().send, Tasks("test"))
    assert tracer.traces("orders")
    assert not tracer.traces("traces")
    assert tracing.SEND_FROM <= tracing.MOST_WAITING
