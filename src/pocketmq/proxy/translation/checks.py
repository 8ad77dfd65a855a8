"""What names, texts and times in requests may be; the texts of refusals are Apache's."""

import re
from typing import Protocol

from pocketmq.model.names import SYSTEM_GROUPS, is_system_group, is_system_topic
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d

_NAME = re.compile(r"[%|a-zA-Z0-9_-]+\Z")
_PATTERN = "^[%|a-zA-Z0-9_-]+$"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ILLEGAL_TAG, _ILLEGAL_KEY = d.Code.ILLEGAL_MESSAGE_TAG, d.Code.ILLEGAL_MESSAGE_KEY
_LONGEST_TOPIC = 127
_LONGEST_GROUP = 120
_TIMESTAMPS = range(-62_135_596_800, 253_402_300_800)
_DURATIONS = range(-315_576_000_000, 315_576_000_001)


class ProtoTime(Protocol):
    """A timestamp or a duration of protobuf."""

    seconds: int
    nanos: int


def topic_name(topic: d.Resource) -> str:
    """Return the topic's name; raises `CallRefused` if clients may not use it."""
    name = topic.name
    reason = None
    if not name.strip():
        reason = "The specified topic is blank"
    elif len(name) > _LONGEST_TOPIC:
        reason = f"The specified topic is longer than topic max length {_LONGEST_TOPIC}."
    elif not _NAME.match(name):
        reason = (
            f"The specified topic[{name}] contains illegal characters, allowing only {_PATTERN}"
        )
    elif is_system_topic(name):
        reason = "cannot access system topic"
    if reason is not None:
        raise CallRefused(d.Code.ILLEGAL_TOPIC, reason)
    return name


def group_name(group: d.Resource) -> str:
    """Return the consumer group's name; raises `CallRefused` if clients may not use it."""
    name = group.name
    reason = None
    if not name.strip():
        reason = "the specified group is blank"
    elif len(name) > _LONGEST_GROUP:
        reason = f"the specified group[{name}] is longer than group max length: {_LONGEST_GROUP}."
    elif not _NAME.match(name):
        reason = (
            f"the specified group[{name}] contains illegal characters, allowing only {_PATTERN}"
        )
    elif is_system_group(name) or name in SYSTEM_GROUPS:
        reason = "cannot use system consumer group"
    if reason is not None:
        raise CallRefused(d.Code.ILLEGAL_CONSUMER_GROUP, reason)
    return name


def has_control(text: str) -> bool:
    """Return whether a text has a control character."""
    return _CONTROL.search(text) is not None


def check_tag(tag: str) -> None:
    """Raise `CallRefused` for a tag that no filter could select."""
    if tag:
        _check_text(_ILLEGAL_TAG, "tag", tag)
        if "|" in tag:
            raise CallRefused(d.Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'")


def check_key(key: str) -> None:
    """Raise `CallRefused` for a key that could not be found again."""
    if key:
        _check_text(_ILLEGAL_KEY, "key", key)


def check_message_group(group: str, limits: ProxyLimits) -> None:
    """Raise `CallRefused` for a message group that is blank or too long."""
    if not group:
        return
    _check_text(d.Code.ILLEGAL_MESSAGE_GROUP, "message group", group)
    if len(group.encode()) >= limits.max_message_group_size:
        most = limits.max_message_group_size
        raise CallRefused(d.Code.ILLEGAL_MESSAGE_GROUP, f"message group exceed the max size {most}")


def invisible_seconds(seconds: float, limits: ProxyLimits, at_least: float = 0.0) -> float:
    """Return how long a message is to be hidden; raises `CallRefused` for too short or too long."""
    if seconds < at_least:
        least = round(at_least * 1000)
        raise CallRefused(
            d.Code.ILLEGAL_INVISIBLE_TIME, f"the invisibleTime is too small. min is {least}"
        )
    if seconds > limits.max_invisible_time:
        most = round(limits.max_invisible_time * 1000)
        raise CallRefused(
            d.Code.ILLEGAL_INVISIBLE_TIME, f"the invisibleTime is too large. max is {most}"
        )
    return seconds


def milliseconds(timestamp: ProtoTime, code: "d.Code") -> int:
    """Return a timestamp in milliseconds; raises `CallRefused` if it is out of protobuf's range."""
    if timestamp.seconds not in _TIMESTAMPS or not 0 <= timestamp.nanos < 1_000_000_000:
        raise CallRefused(code, "the timestamp is invalid")
    return timestamp.seconds * 1000 + timestamp.nanos // 1_000_000


def seconds_of(duration: ProtoTime, code: "d.Code") -> float:
    """Return a duration in seconds; raises `CallRefused` if it is out of protobuf's range."""
    if duration.seconds not in _DURATIONS or abs(duration.nanos) >= 1_000_000_000:
        raise CallRefused(code, "the duration is invalid")
    return float(duration.seconds) + float(duration.nanos) / 1e9


def _check_text(code: "d.Code", what: str, text: str) -> None:
    if not text.strip():
        raise CallRefused(code, f"{what} cannot be the char sequence of whitespace")
    if has_control(text):
        raise CallRefused(code, f"{what} cannot contain control character")
