"""Stored messages as gRPC clients receive them."""

from collections.abc import Collection, Iterator, Mapping
from hashlib import md5
from typing import NamedTuple

from pocketmq.errors import HeaderMalformed, MQError
from pocketmq.model import property_names as names
from pocketmq.model.kinds import TopicKind, kind_of
from pocketmq.model.names import DLQ_PREFIX, RETRY_PREFIX
from pocketmq.native import core
from pocketmq.protocol import Command, ReceivedMessage
from pocketmq.protocol.handles import PopHandle
from pocketmq.protocol.header import read_int64
from pocketmq.protocol.requests.pop import PopResponse
from pocketmq.proxy.translation.checks import ProtoTime
from pocketmq.proxy.translation.receipts import Receipt, receipt_text
from pocketmq.proxy.translation.refusals import OK
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

_TYPES = {
    TopicKind.NORMAL: d.MessageType.NORMAL,
    TopicKind.FIFO: d.MessageType.FIFO,
    TopicKind.DELAY: d.MessageType.DELAY,
    TopicKind.TRANSACTION: d.MessageType.TRANSACTION,
    TopicKind.PRIORITY: d.MessageType.PRIORITY,
    TopicKind.LITE: d.MessageType.LITE,
}
# Of protobuf's enumerations each name is a call.
_MD5 = d.DigestType.MD5
_IDENTITY, _GZIP = d.Encoding.IDENTITY, d.Encoding.GZIP
_OF_RETRIES = "ORIGIN_GROUP"
"""A property that brokers give to copies in a retry topic; not in Java's list of its own."""
_NOT_OF_USERS = names.RESERVED | {_OF_RETRIES}
_SPECIAL = {
    names.TRANSACTION_PREPARED, names.DELAY_LEVEL, names.TIMER_DELIVER_MS, names.TIMER_DELAY_SEC,
    names.TIMER_DELAY_MS, names.SHARDING_KEY, names.PRIORITY, names.LITE_TOPIC,
    names.DLQ_ORIGIN_TOPIC, names.DLQ_ORIGIN_MESSAGE_ID,
}  # fmt: skip
"""Properties of messages that the core leaves to `deliver`."""
_TOGETHER = 256 * 1024
"""Bytes of records after which their responses are sent before more are made."""
_native = core and core.GrpcDeliveries(_NOT_OF_USERS, _SPECIAL)
_FOUND = s.ReceiveMessageResponse(status=OK).SerializeToString()
_LATEST_MS = 253_402_300_799_999


def receipt_of(message: ReceivedMessage) -> Receipt | None:
    """Return the receipt of a popped message; None if it was not popped."""
    text = message.get_property(names.POP_CHECKPOINT)
    if text is None:
        return None
    return Receipt(PopHandle.parse(text), message.commit_log_offset)


def resource(name: str) -> d.Resource:
    """Return a topic or group, its namespace apart from its name as Java splits them."""
    bare, prefix = name, ""
    for each in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(each):
            prefix, bare = each, name[len(each) :]
    namespace, separator, rest = bare.partition("%")
    if not separator or not namespace:
        return d.Resource(name=name)
    return d.Resource(resource_namespace=namespace, name=prefix + rest)


def received(messages: list[ReceivedMessage], hidden: float) -> Iterator[bytes]:
    """Yield the responses with popped messages, which are invisible for `hidden` seconds."""
    start = 0
    while start < len(messages):
        together, size = [], 0
        for message in messages[start:]:
            together.append(message)
            size += message.store_size
            if size > _TOGETHER:
                break
        start += len(together)
        yield from _responses(together, hidden)


class PopFor(NamedTuple):
    """The consumer that a pop is for, as the core reads it."""

    broker: str
    topic: str
    """The topic as the client knows it."""
    hidden_ms: int
    """For how long the messages are invisible."""
    most: int
    """How often a message is delivered at most."""
    tags: Collection[str]
    """The tags that the client wants; without one it wants all."""


def popped_stream(answer: Command, consumer: PopFor, now_ms: int) -> bytes | None:
    """Return all responses to a client that receives the messages of a pop, framed as gRPC does.

    None without the core, and for any message that is unusual, is not for the client, or is one of
    many: those need more than a translation.
    """
    if _native is None:
        return None
    try:
        found = answer.header(PopResponse)
    except HeaderMalformed:
        return None
    if found.order_count_info:
        return None
    starts, offsets = found.start_offset_info or "", found.msg_offset_info or ""
    origin = found.pop_time, found.invisible_time, found.revive_qid, starts, offsets
    stream: bytes | None = _native.popped(answer.body, origin, consumer, _FOUND, now_ms)
    return stream


def _responses(messages: list[ReceivedMessage], hidden: float) -> Iterator[bytes]:
    made: list[bytes | None] = [None] * len(messages)
    if _native is not None:
        made = _native.responses(messages, round(hidden * 1000))
    for message, response in zip(messages, made, strict=True):
        yield response or _response(message, hidden)


def _response(message: ReceivedMessage, hidden: float) -> bytes:
    made = s.ReceiveMessageResponse()
    deliver(message, made.message, hidden=hidden)
    return bytes(made.SerializeToString())


def deliver(message: ReceivedMessage, into: d.Message, *, hidden: float | None = None) -> None:
    """Write a stored message as a client gets it; `hidden` is its invisible time in seconds.

    It is written where it is needed: protobuf copies a message that is made first and put in later.
    """
    properties = message.properties
    into.body, encoding = _body(message)
    topic = message.topic
    if "%" in topic:
        into.topic.CopyFrom(resource(topic))
    else:
        into.topic.name = topic
    if user := _user_properties(properties):
        into.user_properties.update(user)
    system = into.system_properties
    system.message_id = message.message_id
    digest = system.body_digest
    digest.type, digest.checksum = _MD5, _digest(into.body)
    system.body_encoding = encoding
    system.message_type = _TYPES[kind_of(properties)]
    system.born_host = properties.get(names.BORN_HOST) or _host(message.born_host)
    system.store_host = message.store_host
    system.queue_id = message.queue_id
    system.queue_offset = message.queue_offset
    system.delivery_attempt = message.reconsume_times + 1
    _set_time(system.born_timestamp, message.born_timestamp_ms)
    _set_time(system.store_timestamp, message.store_timestamp_ms)
    _add_optional(system, message, properties)
    if hidden is not None:
        system.invisible_duration.FromMilliseconds(round(hidden * 1000))


def _set_time(time: ProtoTime, milliseconds: int) -> None:
    within = min(max(milliseconds, 0), _LATEST_MS)
    time.seconds = within // 1000
    time.nanos = within % 1000 * 1_000_000


def _user_properties(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name not in _NOT_OF_USERS}


def _add_optional(
    system: d.SystemProperties, message: ReceivedMessage, properties: Mapping[str, str]
) -> None:
    if (handle := properties.get(names.POP_CHECKPOINT)) is not None:
        system.receipt_handle = receipt_text(handle, message.commit_log_offset)
    if names.KEYS in properties:
        system.keys.extend(message.keys)
    if (tag := properties.get(names.TAGS)) is not None:
        system.tag = tag
    if (group := properties.get(names.SHARDING_KEY)) is not None:
        system.message_group = group
    if (context := properties.get(names.TRACE_CONTEXT)) is not None:
        system.trace_context = context
    at = properties.get(names.TIMER_DELIVER_MS)
    deliver_at = None if at is None else read_int64(at)
    if deliver_at is not None:
        _set_time(system.delivery_timestamp, deliver_at)
    if names.PRIORITY in properties and (priority := message.priority) is not None:
        system.priority = priority
    if (lite_topic := properties.get(names.LITE_TOPIC)) is not None:
        system.lite_topic = lite_topic
    origin = properties.get(names.DLQ_ORIGIN_TOPIC)
    origin_id = properties.get(names.DLQ_ORIGIN_MESSAGE_ID)
    if origin is not None and origin_id is not None:
        system.dead_letter_queue.topic = origin
        system.dead_letter_queue.message_id = origin_id


def _body(message: ReceivedMessage) -> tuple[bytes, "d.Encoding"]:
    """Return the body inflated, whatever codec its producer used.

    One that cannot be inflated here goes out as it is stored: the client reports it.
    """
    try:
        return message.body, _IDENTITY
    except MQError:
        return message.stored_body, _GZIP


def _digest(body: bytes) -> str:
    return md5(body, usedforsecurity=False).hexdigest().upper()


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")
