"""From the body of a pull reply to messages, inner batches unwrapped."""

import struct
from zlib import crc32

from pocketmq.errors import MessageMalformed, MessagesCutShort
from pocketmq.model import SysFlag
from pocketmq.native import in_core
from pocketmq.protocol.batch import BatchEntry, decode_batch
from pocketmq.protocol.compression import decompress_body
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.received import DeliveryContext, ReceivedMessage, WholeMessage
from pocketmq.protocol.record_scan import (
    BODY_AT,
    MAGIC_V1,
    ReadableBuffer,
    RecordView,
    checksum,
    scan_records,
)
from pocketmq.protocol.records import Record, encode_record

_INNER_BATCH = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
_COMPRESSED = int(SysFlag.COMPRESSED)

# A plain record has a topic of up to 127 bytes, IPv4 hosts and no batch inside.
_PLAIN_HEAD = struct.Struct(">iII8xq8xI44xI").unpack_from
_PLAIN_MAGIC = MAGIC_V1 & 0xFFFF_FFFF
_PLAIN_BODY = BODY_AT[0]
_NOT_PLAIN = int(SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6) | _INNER_BATCH
_TEXT_SIZE = struct.Struct(">H").unpack_from
_LARGEST_TEXT = 2**15 - 1
KEPT_SLICE = 1024
"""A body up to this size is kept when its checksum is verified, so that reading it copies nothing.
Larger ones are sliced again when read: messages that wait would hold their bytes twice."""

_CHECKSUM = "the body does not match its checksum"

INNER_MESSAGES_LIMIT = 1 << 18
"""Messages that the inner batches of one body may hold together: more than fit into a frame with
the properties every producer adds. A few compressed bytes can claim millions."""
_LARGEST_OFFSET = 2**63 - 1


def decode_pulled(body: ReadableBuffer, delivery: DeliveryContext) -> list[ReceivedMessage]:
    """Find the messages in a body of records back to back.

    Lengths and the checksums of bodies are verified; fields are decoded when read. A stored
    checksum of 0 is not verified: it stands for none. Inner batches of 5.x are unwrapped, their
    messages numbered on from the batch's queue offset. If a record is damaged, `MessagesCutShort`
    is raised and its `decoded` holds the messages before: Java silently continues with those and
    checks no body, here the caller decides. Raises `CodecMissing` if an inner batch is compressed
    with a codec that is not installed.

    Inner batches are inflated at once, so `inflate_limit` holds for all of a body together.
    """
    data = bytes(body)
    delta = delivery.offset_delta
    messages, end = plain_messages(data, delivery)
    if end == len(data):
        return messages
    budget = _Budget(delivery.inflate_limit)
    damaged: ReceivedMessage | None = None
    try:
        for position, size, queue_offset, sys_flag, body_size, text_at in scan_records(data, end):
            message = WholeMessage(
                data, position, queue_offset + delta, size, body_size, text_at, delivery
            )
            end = position + size
            if message.body_crc and not message.crc_matches():
                damaged = message
                break
            if sys_flag & _INNER_BATCH == _INNER_BATCH:
                messages += _unwrap(message, sys_flag, budget)
            else:
                messages.append(message)
    except MessageMalformed as error:
        raise MessagesCutShort(error.reason, error.position, messages) from error
    if damaged is not None:
        raise MessagesCutShort(_CHECKSUM, damaged.position, messages, damaged, end)
    if end != len(data):
        raise MessagesCutShort("a blank record, which only commit logs have", end, messages)
    return messages


def from_offset(messages: list[ReceivedMessage], offset: int) -> list[ReceivedMessage]:
    """Return messages without those of an inner batch that come before the offset asked for.

    A broker returns the whole batch to a pull that begins inside of it. Java's clients hand such
    messages to the application once more.
    """
    if (
        not messages
        or not isinstance(messages[0], InnerMessage)
        or messages[0].queue_offset >= offset
    ):
        return messages
    return [each for each in messages if each.queue_offset >= offset]


@in_core
def plain_messages(data: bytes, delivery: DeliveryContext) -> tuple[list[ReceivedMessage], int]:
    """Return the messages before the first record that is damaged or special, and its position.

    Nearly always these are all. Lengths are read without a sign, so that a negative one leads out
    of the data; a special record is decoded by the caller. Slicing a body for its checksum is half
    of what reading it costs, so a small one is kept with its message.
    """
    messages: list[ReceivedMessage] = []
    append, delta = messages.append, delivery.offset_delta
    position, end, size = 0, len(data), 0
    try:
        while position < end:
            size, magic, crc, queue_offset, sys_flag, body_size = _PLAIN_HEAD(data, position)
            body_at = position + _PLAIN_BODY
            at = body_at + body_size
            body = data[body_at:at]
            topic_size = data[at]
            at += topic_size + 3  # behind the lengths of topic and properties
            (text_size,) = _TEXT_SIZE(data, at - 2)
            if (
                at + text_size != position + size
                or magic != _PLAIN_MAGIC
                or sys_flag & _NOT_PLAIN
                or topic_size > 127
                or text_size > _LARGEST_TEXT
                or (crc and crc32(body) & 0x7FFF_FFFF != crc)
            ):
                break
            kept = None if body_size > KEPT_SLICE or sys_flag & _COMPRESSED else body
            append(
                WholeMessage(
                    data, position, queue_offset + delta, size, body_size, at, delivery, kept
                )
            )
            position += size
    except (struct.error, IndexError):  # a length led out of the data
        return messages, position
    if position > end:  # the last one's properties are cut off
        messages.pop()
        position -= size
    return messages, position


class InnerMessage(WholeMessage, frozen=True, gc=False, eq=False, kw_only=True):
    """A message out of an inner batch: the batch's record around a content of its own.

    As in Java no broker's retries count, and its system flag no longer says compressed.
    """

    entry: BatchEntry

    @property
    def batch_properties(self) -> dict[str, str]:
        """The properties of the batch as a whole, such as its own id."""
        return decode_properties(RecordView(self.buffer, self.position).property_bytes)

    @property
    def batch_offset(self) -> int:
        """The queue offset of the batch's first message."""
        return RecordView(self.buffer, self.position).queue_offset + self.delivery.offset_delta

    @property
    def body_crc(self) -> int:
        """The checksum of the body; the batch's own covers all its messages."""
        return checksum(self.entry.body)

    @property
    def flag(self) -> int:
        """The application's own flag."""
        return self.entry.flag

    @property
    def sys_flag(self) -> int:
        """RocketMQ's own bits, those of the batch."""
        return super().sys_flag & ~_COMPRESSED

    @property
    def reconsume_times(self) -> int:
        """How often consuming it has failed here; brokers do not know."""
        return self.delivery.reconsume_times or 0

    @property
    def prepared_transaction_offset(self) -> int:
        """Always 0: batches have no transactions."""
        return 0

    @property
    def stored_body(self) -> bytes:
        """The message's part of the batch."""
        return self.entry.body

    @property
    def property_bytes(self) -> bytes:
        """The message's own properties."""
        return self.entry.property_bytes

    def get_property(self, name: str) -> str | None:
        """Return one property."""
        return self.properties.get(name)

    def crc_matches(self) -> bool:
        """Return whether the checksum fits: always, since it is computed."""
        return True

    def record(self) -> bytes:
        """Return the record a broker would have stored for this message alone."""
        return encode_record(
            Record(
                topic=self.topic_bytes,
                body=self.entry.body,
                property_bytes=self.entry.property_bytes,
                queue_id=self.queue_id,
                flag=self.entry.flag,
                sys_flag=self.sys_flag,
                born_timestamp_ms=self.born_timestamp_ms,
                born_host=self.born_host_bytes,
                queue_offset=self.queue_offset,
                commit_log_offset=self.commit_log_offset,
                store_timestamp_ms=self.store_timestamp_ms,
                store_host=self.store_host_bytes,
            )
        )


class _Budget:
    """The budget of the inner batches still to come: inflated bytes, and messages."""

    __slots__ = ("inflated", "messages")

    def __init__(self, inflate_limit: int) -> None:
        self.inflated = inflate_limit
        self.messages = INNER_MESSAGES_LIMIT


def _unwrap(outer: ReceivedMessage, sys_flag: int, budget: _Budget) -> list[InnerMessage]:
    try:
        body = decompress_body(outer.stored_body, sys_flag, budget.inflated)
        entries = decode_batch(body, budget.messages)
    except MessageMalformed as error:
        raise MessageMalformed(f"inner batch: {error.reason}", outer.position) from error
    if outer.queue_offset + len(entries) > _LARGEST_OFFSET:
        raise MessageMalformed("inner batch: its offsets do not fit 64 bits", outer.position)
    budget.inflated -= len(body) if sys_flag & _COMPRESSED else 0
    budget.messages -= len(entries)
    frame = outer.store_size - outer.body_size - len(outer.property_bytes)
    return [
        InnerMessage(
            outer.buffer,
            outer.position,
            outer.queue_offset + index,
            frame + len(entry.body) + len(entry.property_bytes),
            len(entry.body),
            outer.text_at,
            outer.delivery,
            entry.body,
            entry=entry,
        )
        for index, entry in enumerate(entries)
    ]
