"""A message as a consumer gets it: the raw record, and fields that are decoded when read.

Most consumers read the body and little else, so nothing else is decoded in advance. A message keeps
the whole pull reply it came with alive; a pickled or unpickled one holds its own record alone.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from pocketmq.errors import BodyTooLarge, MQError
from pocketmq.model import SysFlag, property_names
from pocketmq.protocol.compression import INFLATE_LIMIT, body_start, decompress_body
from pocketmq.protocol.hosts import decode_host
from pocketmq.protocol.message_ids import encode_offset_id
from pocketmq.protocol.property_text import decode_properties, find_property
from pocketmq.protocol.record_scan import BODY_AT, FLAG_BYTE, RecordFields, scan_records

_COMPRESSED = int(SysFlag.COMPRESSED)
KEPT_BODY = 4 * 1024 * 1024
"""An inflated body up to this size, Java's largest message, is kept with its message. A larger one
is inflated at each read, so that messages that wait do not hold what few bytes became."""
_SHOWN_BODY = 64
"""Bytes of a body that `repr` shows."""
remember = msgspec.structs.force_setattr


class DeliveryContext(msgspec.Struct, frozen=True, gc=False):
    """Facts about received messages besides their bytes; all of one pull share it.

    `queue_id` and `topic`, where given, win over the record's; `offset_delta` is added to its
    queue offset (both for 5.x static topics). `added` are properties laid over the message's own,
    such as MIN_OFFSET and MAX_OFFSET. Bodies are inflated to `inflate_limit` bytes at most.
    `reconsume_times`, where given, wins too: the broker counts ordered pops beside the records.
    """

    broker_name: str = ""
    queue_id: int | None = None
    topic: str | None = None
    offset_delta: int = 0
    added: dict[str, str] = {}
    inflate_limit: int = INFLATE_LIMIT
    reconsume_times: int | None = None


class ReceivedMessage(RecordFields, frozen=True, gc=False, eq=False):
    """A message from a broker (Java: MessageExt). Threads may share it.

    Two are equal if they are the same record in the same place, whatever properties the receiver
    laid over them.

    Reading `body` raises `BodyTooLarge` if a compressed body would inflate to more than
    `delivery.inflate_limit` bytes, `MessageMalformed` if it is broken, and `CodecMissing` if its
    codec is not installed; reading a host raises `MessageMalformed` for an impossible port.
    Nothing else raises.
    """

    if TYPE_CHECKING:  # a `WholeMessage` or a `PulledMessage` has them
        buffer: bytes
        position: int
        queue_offset: int
        store_size: int
        body_size: int
        text_at: int
        delivery: DeliveryContext
        _body: bytes | None = None
        _topic: str | None = None
        _properties: Mapping[str, str] | None = None

    @property
    def broker_name(self) -> str:
        """The broker it was pulled from."""
        return self.delivery.broker_name

    @property
    def topic(self) -> str:
        """The topic, by the name that the receiver uses."""
        topic = self._topic
        if topic is None:
            topic = self.delivery.topic
            if topic is None:
                topic = self.topic_bytes.decode("utf-8", "replace")
            remember(self, "_topic", topic)
        return topic

    @property
    def queue_id(self) -> int:
        """The queue it was pulled from."""
        given = self.delivery.queue_id
        return super().queue_id if given is None else given

    @property
    def reconsume_times(self) -> int:
        """How often consuming it has failed so far."""
        given = self.delivery.reconsume_times
        return super().reconsume_times if given is None else given

    @property
    def stored_reconsume_times(self) -> int:
        """The same as its record has it: a broker decides by this when it becomes a dead letter."""
        return super().reconsume_times

    @property
    def body(self) -> bytes:
        """The body as the sender handed it over."""
        body = self._body
        if body is None:
            flags = self.buffer[self.position + FLAG_BYTE]
            start = self.position + BODY_AT[flags >> 4 & 3]
            body = self.buffer[start : start + self.body_size]
            if flags & _COMPRESSED:
                body = self._inflated(body, self.delivery.inflate_limit)
                if len(body) > KEPT_BODY:
                    return body
            remember(self, "_body", body)
        return body

    def inflated_body(self, limit: int) -> bytes:
        """Return the body, which may inflate to `limit` bytes; for one that `body` refuses.

        Raises what `body` raises.
        """
        if self._body is not None:
            return self._body
        return self._inflated(self.stored_body, limit)

    def body_start(self, size: int) -> bytes:
        """Return the first `size` bytes of the body, inflating no more. Raises what `body` does."""
        if self._body is not None:
            return self._body[:size]
        return body_start(self.stored_body, self.sys_flag, size)

    def _inflated(self, body: bytes, limit: int) -> bytes:
        try:
            return decompress_body(body, self.sys_flag, limit)
        except BodyTooLarge as error:
            queue = f"topic={self.topic} queue={self.broker_name}:{self.queue_id}"
            raise error.at(f"{queue} offset={self.queue_offset}") from None

    @property
    def property_bytes(self) -> bytes:
        """The properties as text; see `property_text`."""
        return self.buffer[self.text_at : self.position + self.store_size]

    @property
    def properties(self) -> Mapping[str, str]:
        """All properties, RocketMQ's own among them; cannot be changed."""
        properties = self._properties
        if properties is None:
            found = decode_properties(self.property_bytes)
            found.update(self.delivery.added)
            properties = MappingProxyType(found)
            remember(self, "_properties", properties)
        return properties

    @property
    def user_properties(self) -> dict[str, str]:
        """The properties whose names an application may use, ready for a new message."""
        return {
            name: value
            for name, value in self.properties.items()
            if name not in property_names.RESERVED
        }

    def get_property(self, name: str) -> str | None:
        """Return one property without reading the others; quicker than `properties` for a few."""
        if self._properties is not None:
            return self._properties.get(name)
        added = self.delivery.added.get(name)
        if added is not None:
            return added
        end = self.position + self.store_size
        value = find_property(self.buffer, name.encode("utf-8", "replace"), self.text_at, end)
        return None if value is None else value.decode("utf-8", "replace")

    @property
    def tag(self) -> str | None:
        """The tag, if it has one."""
        return self.get_property(property_names.TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys it can be found by."""
        return [key for key in (self.get_property(property_names.KEYS) or "").split(" ") if key]

    @property
    def message_id(self) -> str:
        """The id its sender gave it, else its offset id."""
        return self.get_property(property_names.UNIQUE_KEY) or self.offset_message_id

    @property
    def offset_message_id(self) -> str:
        """The id of its location in the store; a retried message gets a new one."""
        return encode_offset_id(self.store_host_bytes, self.commit_log_offset)

    @property
    def transaction_id(self) -> str | None:
        """The id of the transaction it belongs to, as Java consumers see it."""
        if (self.get_property(property_names.TRANSACTION_PREPARED) or "").lower() == "true":
            return self.get_property(property_names.UNIQUE_KEY)
        return self.get_property(property_names.TRANSACTION_ID)

    @property
    def delay_level(self) -> int:
        """The delay level it was sent with, 0 if none or not a number."""
        text = self.get_property(property_names.DELAY_LEVEL) or ""
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0

    @property
    def priority(self) -> int | None:
        """The priority it was sent with; None if it has none, or no number that could be one."""
        text = self.get_property(property_names.PRIORITY) or ""
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 11 else -1
        return number if 0 <= number < 2**31 else None

    @property
    def born_timestamp(self) -> float:
        """When the producer sent it, in seconds since 1970."""
        return self.born_timestamp_ms / 1000

    @property
    def store_timestamp(self) -> float:
        """When the broker stored it, in seconds since 1970."""
        return self.store_timestamp_ms / 1000

    @property
    def born_host(self) -> str:
        """The producer's address, such as `10.1.2.3:50000` or `[::1]:50000`."""
        return decode_host(self.born_host_bytes)

    @property
    def store_host(self) -> str:
        """The address of the broker that stored it."""
        return decode_host(self.store_host_bytes)

    def record(self) -> bytes:
        """Return the record alone, as it was stored."""
        return self.buffer[self.position : self.position + self.store_size]

    def with_topic(self, topic: str) -> "ReceivedMessage":
        """Return the same message under another name of its topic, sharing the record.

        For consumers that hide a namespace, or a retry topic behind the original one.
        """
        return self._delivered(msgspec.structs.replace(self.delivery, topic=topic))

    def with_reconsume_times(self, times: int) -> "ReceivedMessage":
        """Return the same message, sharing the record, with another count of failures.

        For consumers that retry a message themselves.
        """
        return self._delivered(msgspec.structs.replace(self.delivery, reconsume_times=times))

    def _delivered(self, delivery: DeliveryContext) -> "ReceivedMessage":
        """Return the same message with another delivery that adds the same properties."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReceivedMessage):
            return NotImplemented
        return self is other or (
            self.queue_offset == other.queue_offset
            and self.broker_name == other.broker_name
            and self.queue_id == other.queue_id
            and self.topic == other.topic
            and self.record() == other.record()
        )

    def __ne__(self, other: object) -> bool:
        return not self == other  # msgspec's own would compare field by field

    def __hash__(self) -> int:
        return hash((self.broker_name, self.queue_offset, self.commit_log_offset))

    def __repr__(self) -> str:
        return (
            f"ReceivedMessage(topic={self.topic!r}, broker_name={self.broker_name!r}, "
            f"queue_id={self.queue_id}, queue_offset={self.queue_offset}, "
            f"message_id={self.message_id!r}, tag={self.tag!r}, body={self._shown_body()})"
        )

    def _shown_body(self) -> str:
        """Return the beginning of the body, and how long it is if that is not all."""
        try:
            body = self.body_start(_SHOWN_BODY + 1)
        except MQError:  # damaged, or its codec is missing
            return f"<{self.body_size} bytes>"
        if len(body) <= _SHOWN_BODY:
            return repr(body)
        packed = " packed" if self.sys_flag & _COMPRESSED else ""
        return f"{body[:_SHOWN_BODY]!r}... <{self.body_size} bytes{packed}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return revive, (self.record(), self.queue_offset, self.delivery)


class WholeMessage(ReceivedMessage, frozen=True, gc=False, eq=False):
    """A message with all its fields."""

    buffer: bytes
    position: int
    queue_offset: int
    store_size: int
    body_size: int
    text_at: int
    delivery: DeliveryContext
    _body: bytes | None = None
    _topic: str | None = None
    _properties: Mapping[str, str] | None = None

    def _delivered(self, delivery: DeliveryContext) -> ReceivedMessage:
        return msgspec.structs.replace(self, delivery=delivery, _topic=delivery.topic)


def revive(record: bytes, queue_offset: int, delivery: DeliveryContext) -> ReceivedMessage:
    """Rebuild a message from what pickling kept of it."""
    ((position, size, _, _, body_size, text_at),) = scan_records(record)
    return WholeMessage(record, position, queue_offset, size, body_size, text_at, delivery)
