"""What a pop brought: messages with their handles, and handles put together for many acks.

A message's handle travels in its `POP_CK` property, as in Java. Talks to no server.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from pocketmq.client.damage import tell_left_out
from pocketmq.errors import InvalidInput, MessagesCutShort
from pocketmq.model import property_names
from pocketmq.protocol import DeliveryContext, ReceivedMessage, handles
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.requests.pop import BatchAck, PopResponse, bits_of


class PopResult(NamedTuple):
    """The answer to a pop."""

    messages: list[ReceivedMessage]
    hidden_until: float
    """By the loop's clock: then another consumer may get them. A little early rather than late."""
    full: bool = False
    """Too many calls wait at the broker already: it does not hold another."""
    popped_at_ms: int = 0
    """When the messages were popped, by the broker's clock."""


class DecodedPop(NamedTuple):
    """The messages of an answer, each with its handle."""

    messages: list[ReceivedMessage]
    damaged: list[ReceivedMessage]
    """Those whose bodies do not match their checksums; no application may get them."""


def read_popped(response: PopResponse, body: bytes, broker: str, topic: str) -> DecodedPop:
    """Return the messages of a pop as an application sees them: under `topic`, with handles.

    Those behind a record whose lengths make no sense are left out and not acknowledged,
    so they are redelivered. Raises `HeaderMalformed` if the answer lacks the messages' origin.
    """
    found, damaged = _find(body, broker, topic)
    starts = handles.read_start_offsets(response.start_offset_info)
    # Offsets come in the order of the messages, queue by queue.
    offsets = {
        q: iter(each) for q, each in handles.read_message_offsets(response.msg_offset_info).items()
    }
    counts = handles.read_order_counts(response.order_count_info)
    messages: list[ReceivedMessage] = []
    for message in found:
        handle = message.get_property(property_names.POP_CHECKPOINT)
        tries: int | None = None
        if handle is None:
            mark = handles.TopicMark.of(message.topic)
            queue = handles.PopQueue(mark, message.queue_id)
            offset = next(offsets.get(queue, iter(())), message.queue_offset)
            handle = str(
                handles.PopHandle(
                    start_offset=starts.get(queue, offset),
                    pop_time_ms=response.pop_time,
                    invisible_time_ms=response.invisible_time,
                    revive_queue_id=response.revive_qid,
                    mark=mark,
                    broker_name=broker,
                    queue_id=message.queue_id,
                    queue_offset=offset,
                )
            )
            tries = (
                handles.order_count(counts, handles.PopPlace(mark, message.queue_id, offset))
                or None
            )
        added = {property_names.POP_CHECKPOINT: handle}
        if message.get_property(property_names.FIRST_POP_TIME) is None:
            added[property_names.FIRST_POP_TIME] = str(response.pop_time)
        delivery = DeliveryContext(
            broker_name=broker, topic=topic, added=added, reconsume_times=tries
        )
        messages.append(_delivered(message, delivery))
    if not damaged:
        return DecodedPop(messages, [])
    return DecodedPop(
        [each for number, each in enumerate(messages) if number not in damaged],
        [messages[number] for number in damaged],
    )


def _find(body: bytes, broker: str, topic: str) -> tuple[list[ReceivedMessage], list[int]]:
    """Find all messages, and the numbers of those with damaged bodies."""
    found: list[ReceivedMessage] = []
    damaged: list[int] = []
    while True:
        try:
            found += decode_pulled(body, DeliveryContext(broker_name=broker))
        except MessagesCutShort as error:
            found += error.decoded
            if error.damaged is None:
                tell_left_out(topic, broker, error.reason)
                return found, damaged
            damaged.append(len(found))
            found.append(error.damaged)
            body = body[error.end :]
        else:
            return found, damaged


def handle_of(message: ReceivedMessage) -> handles.PopHandle:
    """Return a message's handle; raises `InvalidInput` if it was not popped."""
    given: object = message
    text = (
        given.get_property(property_names.POP_CHECKPOINT)
        if isinstance(given, ReceivedMessage)
        else None
    )
    if text is None:
        raise InvalidInput("the message was not received by a POP consumer")
    handle = handles.PopHandle.parse(text)
    if handle.queue_offset is None:
        return msgspec.structs.replace(handle, queue_offset=message.queue_offset)
    return handle


def with_handle(message: ReceivedMessage, handle: handles.PopHandle) -> ReceivedMessage:
    """Return the same message under a new handle."""
    added = message.delivery.added | {property_names.POP_CHECKPOINT: str(handle)}
    return _delivered(message, msgspec.structs.replace(message.delivery, added=added))


def batch_acks(group: str, of: Iterable[tuple[str, handles.PopHandle]]) -> list[BatchAck]:
    """Put together the acks of one broker, by topic and pop; names are those of the wire."""
    together: dict[tuple[str, handles.PopHandle], list[int]] = defaultdict(list)
    for topic, handle in of:
        offset = handle.queue_offset if handle.queue_offset is not None else handle.start_offset
        together[topic, msgspec.structs.replace(handle, queue_offset=None)].append(offset)
    return [
        BatchAck(
            consumer_group=group,
            topic=topic,
            retry=handle.mark.value,
            start_offset=handle.start_offset,
            queue_id=handle.queue_id,
            revive_queue_id=handle.revive_queue_id,
            pop_time=handle.pop_time_ms,
            invisible_time=handle.invisible_time_ms,
            bits=bits_of(offsets, handle.start_offset),
        )
        for (topic, handle), offsets in together.items()
    ]


def _delivered(message: ReceivedMessage, delivery: DeliveryContext) -> ReceivedMessage:
    """Lay another delivery over a message; properties read before are read again."""
    return msgspec.structs.replace(
        message, delivery=delivery, _topic=delivery.topic, _properties=None
    )
