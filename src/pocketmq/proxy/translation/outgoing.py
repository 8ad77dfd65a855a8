"""Messages that gRPC clients send, as a broker stores them: properties, flags, body.

Gzip bodies become zlib, which all RocketMQ clients read. Apache's proxy stores the gzip data as
it comes and flags it as compressed; Java's remoting consumers then fail to inflate it as zlib.
Both wrap the same deflate stream, so it is kept.
"""

import zlib
from collections.abc import Sequence

import msgspec

from pocketmq.errors import InvalidInput
from pocketmq.model import SysFlag, property_names
from pocketmq.model.kinds import TopicKind, kind_of
from pocketmq.protocol.compression import Codec, mark_compressed
from pocketmq.protocol.property_text import encode_properties
from pocketmq.proxy.translation import checks
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d

# Of protobuf's enumerations each name is a call.
_GZIP = d.Encoding.GZIP
_ENCODINGS = frozenset(d.Encoding.values())
_TRANSACTION = d.MessageType.TRANSACTION


class StoredForm(msgspec.Struct, frozen=True, gc=False):
    """A message as it goes to a broker."""

    topic: str
    message_id: str
    body: bytes
    properties: str
    sys_flag: int
    born_ms: int
    kind: TopicKind
    message_group: str


def stored_forms(
    messages: Sequence[d.Message], sender: str, limits: ProxyLimits, now_ms: int
) -> list[StoredForm]:
    """Return the messages of one request; `sender` is the client's address.

    Raises `CallRefused` for what Apache's proxy refuses.
    """
    if not messages:
        raise CallRefused(d.Code.MESSAGE_CORRUPTED, "no message to send")
    topic = messages[0].topic
    checks.topic_name(topic)
    if len(messages) > 1 and any(message.topic != topic for message in messages):
        raise CallRefused(d.Code.MESSAGE_CORRUPTED, "topic in message is not same")
    return [_stored_form(message, sender, limits, now_ms) for message in messages]


def _stored_form(message: d.Message, sender: str, limits: ProxyLimits, now_ms: int) -> StoredForm:
    system = message.system_properties
    _check_body(message.body, limits)
    _check_supported(system)
    properties = _properties(message, sender, limits, now_ms)
    body, sys_flag = message.body, 0
    if system.body_encoding == _GZIP:
        body, sys_flag = zlib_of(body), mark_compressed(0, Codec.ZLIB)
    if system.message_type == _TRANSACTION:
        sys_flag |= int(SysFlag.PREPARED)
    try:
        text = encode_properties(properties).decode()
    except InvalidInput as error:
        raise CallRefused(d.Code.MESSAGE_PROPERTIES_TOO_LARGE, str(error)) from error
    born = properties.get(property_names.BORN_TIMESTAMP)
    return StoredForm(
        message.topic.name,
        system.message_id,
        body,
        text,
        sys_flag,
        now_ms if born is None else int(born),
        kind_of(properties),
        system.message_group,
    )


def _check_body(body: bytes, limits: ProxyLimits) -> None:
    if not body:
        raise CallRefused(d.Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if len(body) > limits.max_message_size:
        most = limits.max_message_size
        raise CallRefused(
            d.Code.MESSAGE_BODY_TOO_LARGE, f"message body cannot exceed the max {most}"
        )


def _check_supported(system: d.SystemProperties) -> None:
    """Refuse what would otherwise be accepted and ignored."""
    if system.body_encoding not in _ENCODINGS:
        code = system.body_encoding
        raise CallRefused(d.Code.MESSAGE_CORRUPTED, f"body encoding {code} is unknown")
    if system.lite_topic:
        raise CallRefused(d.Code.UNSUPPORTED, "lite topics are not supported")


def _properties(
    message: d.Message, sender: str, limits: ProxyLimits, now_ms: int
) -> dict[str, str]:
    system = message.system_properties
    properties = _user_properties(message, limits)
    if not system.message_id.strip():
        raise CallRefused(d.Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty")
    properties[property_names.UNIQUE_KEY] = system.message_id
    if system.message_type == _TRANSACTION:
        properties |= _transaction(message, limits)
    if system.HasField("delivery_timestamp"):
        properties[property_names.TIMER_DELIVER_MS] = str(_deliver_at(system, limits, now_ms))
    if system.HasField("priority"):
        properties[property_names.PRIORITY] = str(_checked_priority(system.priority))
    # The group of a half message's checks: any producer of the topic answers for the others.
    properties[property_names.PRODUCER_GROUP] = message.topic.name
    if system.message_group:
        checks.check_message_group(system.message_group, limits)
        properties[property_names.SHARDING_KEY] = system.message_group
    if system.trace_context:
        properties[property_names.TRACE_CONTEXT] = system.trace_context
    born_host = system.born_host if system.born_host.strip() else sender
    if born_host:
        properties[property_names.BORN_HOST] = born_host
    if system.HasField("born_timestamp"):
        born_ms = checks.milliseconds(system.born_timestamp, d.Code.BAD_REQUEST)
        properties[property_names.BORN_TIMESTAMP] = str(born_ms)
    return properties


def _user_properties(message: d.Message, limits: ProxyLimits) -> dict[str, str]:
    """Return the user's properties with tag and keys, which count for the same limit."""
    most = limits.user_property_max_num
    if len(message.user_properties) > most:
        raise CallRefused(
            d.Code.MESSAGE_PROPERTIES_TOO_LARGE, f"too many user properties, max is {most}"
        )
    properties = dict(message.user_properties)
    for name, value in properties.items():
        _check_property(name, value)
    tag, keys = message.system_properties.tag, list(message.system_properties.keys)
    checks.check_tag(tag)
    for key in keys:
        checks.check_key(key)
    texts = "".join([*properties, *properties.values(), tag, *keys])
    if len(texts.encode()) > limits.max_user_property_size:
        size = limits.max_user_property_size
        raise CallRefused(
            d.Code.MESSAGE_PROPERTIES_TOO_LARGE,
            f"the total size of user property is too large, max is {size}",
        )
    if tag:
        properties[property_names.TAGS] = tag
    if keys:
        properties[property_names.KEYS] = " ".join(keys)
    return properties


def _check_property(name: str, value: str) -> None:
    code = d.Code.ILLEGAL_MESSAGE_PROPERTY_KEY
    if name in property_names.RESERVED:
        raise CallRefused(code, f"property is used by system: {name}")
    if checks.has_control(name):
        raise CallRefused(code, "the key of property cannot contain control character")
    if checks.has_control(value):
        raise CallRefused(code, "the value of property cannot contain control character")
    if not name:
        raise CallRefused(code, "the key of property cannot be empty")


def _transaction(message: d.Message, limits: ProxyLimits) -> dict[str, str]:
    system = message.system_properties
    properties = {property_names.TRANSACTION_PREPARED: "true"}
    if system.HasField("orphaned_transaction_recovery_duration"):
        duration = system.orphaned_transaction_recovery_duration
        wait = int(checks.seconds_of(duration, d.Code.BAD_REQUEST))
        if wait > limits.max_transaction_recovery:
            raise CallRefused(
                d.Code.BAD_REQUEST,
                "the max transaction recovery time of message is too large, "
                f"max is {limits.max_transaction_recovery}",
            )
        properties[property_names.CHECK_IMMUNITY_SECONDS] = str(wait)
    return properties


def _checked_priority(priority: int) -> int:
    if priority < 0:
        raise CallRefused(
            d.Code.BAD_REQUEST, f"the priority must be greater than or equal to 0, not {priority}"
        )
    return priority


def _deliver_at(system: d.SystemProperties, limits: ProxyLimits, now_ms: int) -> int:
    at_ms = checks.milliseconds(system.delivery_timestamp, d.Code.ILLEGAL_DELIVERY_TIME)
    longest = round(limits.max_delay_time * 1000)
    if at_ms - now_ms > longest:
        raise CallRefused(
            d.Code.ILLEGAL_DELIVERY_TIME,
            f"the max delay time of message is too large, max is {longest}",
        )
    return at_ms


LARGEST_INFLATED = 64 * 1024 * 1024
_ZLIB_HEADER = b"\x78\x9c"
_STEP = 1 << 20
_FIXED = 10
_TRAILER = 8


def zlib_of(body: bytes, limit: int = LARGEST_INFLATED) -> bytes:
    """Return gzip data as zlib data; raises `CallRefused` if it is broken or inflates too far."""
    start = _deflate_at(body)
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    adler, crc, size, rest = 1, 0, 0, body[start:]
    try:
        while True:
            part = inflate.decompress(rest, _STEP)
            adler, crc, size = zlib.adler32(part, adler), zlib.crc32(part, crc), size + len(part)
            if size > limit:
                most = f"the body inflates to more than {limit} bytes"
                raise CallRefused(d.Code.MESSAGE_BODY_TOO_LARGE, most)
            rest = inflate.unconsumed_tail
            if inflate.eof or not (part or rest):
                break
    except zlib.error as error:
        raise _broken(str(error)) from error
    trailer = inflate.unused_data[:_TRAILER]
    if not inflate.eof or len(trailer) < _TRAILER:
        raise _broken("it is cut short")
    if trailer != crc.to_bytes(4, "little") + (size & 0xFFFF_FFFF).to_bytes(4, "little"):
        raise _broken("its checksum is wrong")
    deflated = body[start : len(body) - len(inflate.unused_data)]
    return _ZLIB_HEADER + deflated + adler.to_bytes(4, "big")


def _deflate_at(body: bytes) -> int:
    """Return where the deflate stream starts, behind the optional fields of the gzip header."""
    if len(body) < _FIXED + _TRAILER or body[:3] != b"\x1f\x8b\x08":
        raise _broken("it has no gzip header")
    flags, at = body[3], _FIXED
    if flags & 4:
        at += 2 + int.from_bytes(body[at : at + 2], "little")
    for bit in (8, 16):  # name and comment, each ended by a zero
        if flags & bit:
            end = body.find(b"\0", at)
            if end < 0:
                raise _broken("its header is cut short")
            at = end + 1
    return at + (2 if flags & 2 else 0)


def _broken(reason: str) -> CallRefused:
    return CallRefused(d.Code.MESSAGE_CORRUPTED, f"the body is not valid gzip data: {reason}")
