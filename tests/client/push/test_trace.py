"""What a consumer's trace tells."""

import asyncio
import threading

import msgspec
import pytest

from pocketmq.balance.consumer.handling import ConsumeReturnType
from pocketmq.client.clock import SystemClock
from pocketmq.client.push.consume_hooks import ConsumeContext, ConsumeHook
from pocketmq.client.push.trace import HandlingTrace
from pocketmq.client.tasks import Tasks
from pocketmq.client.tracing import Tracer
from pocketmq.model import Message, MessageQueue
from pocketmq.protocol import DeliveryContext, ReceivedMessage, trace_text
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.received import revive
from pocketmq.protocol.records import Record, encode_record

QUEUE = MessageQueue("orders", "broker-a", 0)


def received(topic: str = "orders", retries: int = 0, **properties: str) -> ReceivedMessage:
    record = Record(
        topic=topic.encode(),
        body=b"42 EUR",
        reconsume_times=retries,
        property_bytes=encode_properties(properties),
    )
    return revive(encode_record(record), 0, DeliveryContext("broker-a"))


class Tracing:
    """A tracer, what it sends, and the hook."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.tracer = Tracer("traces", self._send, Tasks("test"))
        ids = UniqueIds(b"\x7f\0\0\1", 1, 2)
        self.hook: ConsumeHook = HandlingTrace(self.tracer, SystemClock(), ids)

    async def _send(self, message: Message) -> None:
        self.messages.append(message)

    async def told(self) -> list[trace_text.Traced]:
        await self.tracer.close()
        return [
            each
            for message in self.messages
            for each in trace_text.decode_traced(message.body.decode())
        ]


def context(*messages: ReceivedMessage) -> ConsumeContext:
    return ConsumeContext("ns%billing", "ns", QUEUE, messages, 1794707172146)


def end(call: ConsumeContext, outcome: ConsumeReturnType, elapsed: float = 0.5) -> None:
    call.outcome = outcome
    call.success = outcome is ConsumeReturnType.SUCCESS
    call.elapsed = elapsed


async def test_a_call_is_told_before_and_after() -> None:
    tracing = Tracing()
    call = context(
        received(UNIQ_KEY="M1", KEYS="a b", MSG_REGION="eu", TRACE_ON="true", retries=2),
        received(UNIQ_KEY="M2", MSG_REGION="eu"),
    )
    tracing.hook.before_consume(call)
    end(call, ConsumeReturnType.SUCCESS)
    tracing.hook.after_consume(call)
    first, second, *after = await tracing.told()
    assert isinstance(first, trace_text.TracedDelivery)
    assert first == trace_text.TracedDelivery(
        time_ms=1794707172146,
        region="eu",
        group="billing",
        request_id=first.request_id,
        message_id="M1",
        retries=2,
        keys="a b",
    )
    assert second == msgspec.structs.replace(first, message_id="M2", retries=0, keys=None)
    assert len(first.request_id) == 32
    assert isinstance(after[0], trace_text.TracedHandling)
    assert after == [
        trace_text.TracedHandling(
            request_id=first.request_id,
            message_id=message_id,
            cost_ms=250,  # each has its share
            ok=True,
            keys=keys,
            time_ms=after[0].time_ms,
            group="billing",
        )
        for message_id, keys in (("M1", "a b"), ("M2", None))
    ]


@pytest.mark.parametrize(
    ("outcome", "handled_as"),
    [
        (ConsumeReturnType.TIME_OUT, trace_text.HandledAs.TIMED_OUT),
        (ConsumeReturnType.EXCEPTION, trace_text.HandledAs.RAISED),
        (ConsumeReturnType.RETURNNULL, trace_text.HandledAs.RETURNED_NOTHING),
        (ConsumeReturnType.FAILED, trace_text.HandledAs.FAILED),
    ],
)
async def test_how_a_handler_failed_is_told(
    outcome: ConsumeReturnType, handled_as: trace_text.HandledAs
) -> None:
    tracing = Tracing()
    call = context(received(UNIQ_KEY="M1", MSG_REGION="eu"))
    tracing.hook.before_consume(call)
    end(call, outcome)
    tracing.hook.after_consume(call)
    _, after = await tracing.told()
    assert isinstance(after, trace_text.TracedHandling)
    assert (after.ok, after.handled_as) == (False, handled_as)


async def test_a_message_that_names_no_region_is_of_the_usual_one() -> None:
    tracing = Tracing()
    tracing.hook.before_consume(context(received(UNIQ_KEY="M1")))
    (told,) = await tracing.told()
    assert isinstance(told, trace_text.TracedDelivery)
    assert told.region == "DefaultRegion"


async def test_only_what_shall_be_traced_is_told() -> None:
    tracing = Tracing()
    call = context(
        received(UNIQ_KEY="M2", MSG_REGION="eu", TRACE_ON="false"),
        received(UNIQ_KEY="M3", MSG_REGION="eu", topic="traces"),
    )
    tracing.hook.before_consume(call)
    end(call, ConsumeReturnType.SUCCESS)
    tracing.hook.after_consume(call)
    assert await tracing.told() == []


async def test_handlers_in_threads_are_traced_too() -> None:
    tracing = Tracing()
    call = context(received(UNIQ_KEY="M1", MSG_REGION="eu"))

    def handle() -> None:
        assert threading.current_thread() is not threading.main_thread()
        tracing.hook.before_consume(call)
        end(call, ConsumeReturnType.SUCCESS)
        tracing.hook.after_consume(call)

    await asyncio.to_thread(handle)
    assert [type(each) for each in await tracing.told()] == [
        trace_text.TracedDelivery,
        trace_text.TracedHandling,
    ]
