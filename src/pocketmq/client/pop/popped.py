"""What a pop brought: messages with their handles, and handles put together for many acks.

A message's handle travels in its `POP_CK` property, as in Java. Talks to no server.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import msgspec

from pocketmq.client.damage import tell_left_out
from pocketmq.errors import InvalidInput, MessagesCutShort
from pocketmq.model import property_names
from pocketmq.protocol import DeliveryContext, ReceivedMessage, handles
from pocketmq.protocol.compression import INFLATE_LIMIT
from pocketmq.protocol.pulled import InnerMessage, decode_pulled
from pocketmq.protocol.pulled_message import deliver
from pocketmq.protocol.record_scan import BODY_AT, FLAG_BYTE, ReadableBuffer
from pocketmq.protocol.requests.pop import BatchAck, PopResponse, bits_of

_CHECKPOINT = property_names.POP_CHECKPOINT.encode()
_FIRST_POP = property_names.FIRST_POP_TIME.encode()
_BEFORE_OFFSET = 6
"""Blanks in a handle before the one in front of its message's offset."""
_pop_of = attrgetter(
    "start_offset", "pop_time_ms", "invisible_time_ms", "revive_queue_id", "mark._value_",
    "broker_name", "queue_id",
)  # fmt: skip
"""Returns what handles of messages that were popped together have in common."""

_Origin: TypeAlias = tuple[handles.PopQueue, str | None, Iterator[int]]
"""A queue, what its messages' handles begin with if the broker said so, and their offsets."""


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
    origins = _Origins(response, broker)
    # Few answers have any of these; looking once is cheaper than once for each message.
    handled, popped_before = _CHECKPOINT in body, _FIRST_POP in body
    popped_at = str(response.pop_time)
    messages = []
    for message in found:
        inner = isinstance(message, InnerMessage)  # its properties may be compressed
        handle = message.get_property(property_names.POP_CHECKPOINT) if handled or inner else None
        tries: int | None = None
        if handle is None:
            handle, tries = origins.of_inner(message) if inner else origins.of(message)
        added = {property_names.POP_CHECKPOINT: handle}
        if (
            not (popped_before or inner)
            or message.get_property(property_names.FIRST_POP_TIME) is None
        ):
            added[property_names.FIRST_POP_TIME] = popped_at
        delivery = DeliveryContext(broker, None, topic, 0, added, INFLATE_LIMIT, tries)
        messages.append(deliver(message, delivery))
    if not damaged:
        return DecodedPop(messages, [])
    return DecodedPop(
        [each for number, each in enumerate(messages) if number not in damaged],
        [messages[number] for number in damaged],
    )


class _Origins:
    """The queues that the messages of an answer were taken from."""

    def __init__(self, response: PopResponse, broker: str) -> None:
        self._response = response
        self._broker = broker
        self._starts = handles.read_start_offsets(response.start_offset_info)
        # Offsets come in the order of the messages, queue by queue.
        taken = handles.read_message_offsets(response.msg_offset_info)
        self._offsets = {queue: iter(offsets) for queue, offsets in taken.items()}
        self._counts = handles.read_order_counts(response.order_count_info)
        self._known: dict[bytes, _Origin] = {}
        self._batch: tuple[ReadableBuffer, int, str, int | None] | None = None  # the latest

    def of(self, message: ReceivedMessage, *, inner: bool = False) -> tuple[str, int | None]:
        """Return the handle of the next message, and how often it was popped if it was before."""
        data, at = message.buffer, message.position
        if inner:
            key = b"%d of %b" % (message.queue_id, message.topic_bytes)
        else:  # the same in two slices: the id, and the topic with its length
            body_end = at + BODY_AT[data[at + FLAG_BYTE] >> 4 & 3] + message.body_size
            key = data[at + 12 : at + 16] + data[body_end : message.text_at - 2]
        origin = self._known.get(key)
        if origin is None:
            origin = self._known[key] = self._origin(message)
        queue, common, offsets = origin
        offset = next(offsets, message.queue_offset)
        tries: int | None = None
        if self._counts:
            tries = handles.order_count(self._counts, handles.PopPlace(*queue, offset)) or None
        # A handle ends with the message's offset, and all before it is the same for a queue.
        return f"{common or self._handle(queue, offset)} {offset}", tries

    def _origin(self, message: ReceivedMessage) -> _Origin:
        topic = message.topic_bytes.decode("utf-8", "replace")
        queue = handles.PopQueue(handles.TopicMark.of(topic), message.queue_id)
        start = self._starts.get(queue)
        common = None if start is None else str(self._handle(queue, start))
        return queue, common, self._offsets.get(queue, iter(()))

    def of_inner(self, message: ReceivedMessage) -> tuple[str, int | None]:
        """Return a handle of its own for a message of an inner batch, which was taken as a whole.

        All before the offset is the batch's; see `questions.WrappedBatches`.
        """
        place = message.buffer, message.position
        if self._batch is None or self._batch[0] is not place[0] or self._batch[1] != place[1]:
            self._batch = (*place, *self.of(message, inner=True))
        _, _, handle, tries = self._batch
        return f"{handle.rpartition(' ')[0]} {message.queue_offset}", tries

    def _handle(self, queue: handles.PopQueue, start: int) -> handles.PopHandle:
        return handles.PopHandle(
            start_offset=start,
            pop_time_ms=self._response.pop_time,
            invisible_time_ms=self._response.invisible_time,
            revive_queue_id=self._response.revive_qid,
            mark=queue.mark,
            broker_name=self._broker,
            queue_id=queue.queue_id,
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
    common, _, last = text.rpartition(" ")
    usual = common.count(" ") == _BEFORE_OFFSET and common[-1] != " "
    if usual and last.isascii() and last.isdigit() and len(last) < 19:
        return msgspec.structs.replace(_parsed(common), queue_offset=int(last))
    handle = handles.PopHandle.parse(text)
    if handle.queue_offset is None:
        return msgspec.structs.replace(handle, queue_offset=message.queue_offset)
    return handle


@lru_cache(1024)
def _parsed(common: str) -> handles.PopHandle:
    """Parse what the handles of messages that were popped together have in common."""
    return handles.PopHandle.parse(common)


def with_handle(message: ReceivedMessage, handle: handles.PopHandle) -> ReceivedMessage:
    """Return the same message under a new handle."""
    added = message.delivery.added | {property_names.POP_CHECKPOINT: str(handle)}
    return _delivered(message, msgspec.structs.replace(message.delivery, added=added))


def batch_acks(group: str, of: Iterable[tuple[str, handles.PopHandle]]) -> list[BatchAck]:
    """Put together the acks of one broker, by topic and pop; names are those of the wire."""
    together: dict[object, tuple[str, handles.PopHandle, list[int]]] = {}
    for topic, handle in of:
        key = topic, _pop_of(handle)
        found = together.get(key)
        if found is None:
            found = together[key] = topic, handle, []
        offset = handle.queue_offset
        found[2].append(handle.start_offset if offset is None else offset)
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
        for topic, handle, offsets in together.values()
    ]


def _delivered(message: ReceivedMessage, delivery: DeliveryContext) -> ReceivedMessage:
    """Lay another delivery over a message; properties read before are read again."""
    return deliver(copy(message), delivery)
