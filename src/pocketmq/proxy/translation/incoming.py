"""Stored messages as gRPC clients receive them."""

from hashlib import md5

from pocketmq.errors import MQError
from pocketmq.model import property_names as names
from pocketmq.model.names import DLQ_PREFIX, RETRY_PREFIX
from pocketmq.model.topic_kinds import TopicKind, kind_of
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.handles import PopHandle
from pocketmq.protocol.header import read_int64
from pocketmq.proxy.translation.receipts import Receipt
from pocketmq.proxy.wire import definition as d

_TYPES = {
    TopicKind.NORMAL: d.MessageType.NORMAL,
    TopicKind.FIFO: d.MessageType.FIFO,
    TopicKind.DELAY: d.MessageType.DELAY,
    TopicKind.TRANSACTION: d.MessageType.TRANSACTION,
    TopicKind.PRIORITY: d.MessageType.PRIORITY,
    TopicKind.LITE: d.MessageType.LITE,
}
_OF_RETRIES = "ORIGIN_GROUP"
"""A property that brokers give to copies in a retry topic; not in Java's list of its own."""
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


def delivered(message: ReceivedMessage, *, hidden: float | None = None) -> d.Message:
    """Return a stored message as a client gets it; `hidden` is its invisible time in seconds."""
    body, encoding = _body(message)
    system = d.SystemProperties(
        message_id=message.message_id,
        body_digest=d.Digest(type=d.DigestType.MD5, checksum=_digest(body)),
        body_encoding=encoding,
        message_type=_TYPES[kind_of(message.properties)],
        born_host=message.get_property(names.BORN_HOST) or _host(message.born_host),
        store_host=message.store_host,
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        delivery_attempt=message.reconsume_times + 1,
        keys=message.keys,
    )
    system.born_timestamp.FromMilliseconds(_in_range(message.born_timestamp_ms))
    system.store_timestamp.FromMilliseconds(_in_range(message.store_timestamp_ms))
    _add_optional(system, message)
    receipt = receipt_of(message)
    if receipt is not None:
        system.receipt_handle = str(receipt)
    if hidden is not None:
        system.invisible_duration.FromMilliseconds(round(hidden * 1000))
    return d.Message(
        topic=resource(message.topic),
        user_properties=_user_properties(message),
        system_properties=system,
        body=body,
    )


def _user_properties(message: ReceivedMessage) -> dict[str, str]:
    properties = message.user_properties
    properties.pop(_OF_RETRIES, None)
    return properties


def _add_optional(system: d.SystemProperties, message: ReceivedMessage) -> None:
    properties = message.properties
    if (tag := properties.get(names.TAGS)) is not None:
        system.tag = tag
    if (group := properties.get(names.SHARDING_KEY)) is not None:
        system.message_group = group
    if (context := properties.get(names.TRACE_CONTEXT)) is not None:
        system.trace_context = context
    deliver_at = read_int64(properties.get(names.TIMER_DELIVER_MS, ""))
    if deliver_at is not None:
        system.delivery_timestamp.FromMilliseconds(_in_range(deliver_at))
    if (priority := message.priority) is not None:
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
        return message.body, d.Encoding.IDENTITY
    except MQError:
        return message.stored_body, d.Encoding.GZIP


def _digest(body: bytes) -> str:
    return md5(body, usedforsecurity=False).hexdigest().upper()


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def _in_range(milliseconds: int) -> int:
    return min(max(milliseconds, 0), _LATEST_MS)
