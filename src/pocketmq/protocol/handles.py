"""Handles: texts that name a message so that a client can act on it later.

A receipt handle comes with each popped message, to acknowledge it or to change how long it stays
hidden: it travels in the message's `POP_CK` property and comes back as `extraInfo`. The other pop
texts are fields of `PopResponse`; numbers in them are joined by blanks. A recall handle lets a
producer take a delayed message back before it is due.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple, TypeVar

from msgspec import Struct

from pocketmq.errors import HeaderMalformed
from pocketmq.model.java_strings import java_split
from pocketmq.model.names import RETRY_PREFIX
from pocketmq.protocol.header import read_int32, read_int64

ORDERED_REVIVE_QUEUE = 999
"""The revive queue id of messages taken in order; there is no such queue."""
K = TypeVar("K")
V = TypeVar("V")
_USUAL_LONGS = re.compile(r"[0-9]{1,18}(?:,[0-9]{1,18})*\Z").match  # any of them is 64 bits long
_RECALL_VERSION = "v1"
_BASE64 = re.compile(r"[A-Za-z0-9_-]+={0,2}\Z")  # Python's decoder skips all else


class TopicMark(Enum):
    """The kind of topic a message was popped from, so that handles need not name the topic."""

    NORMAL = "0"
    RETRY = "1"  # `%RETRY%group_topic`
    RETRY_V2 = "2"  # `%RETRY%group+topic`

    __hash__ = object.__hash__  # members are compared by identity; hashing their names costs more

    @classmethod
    def of(cls, topic: str) -> "TopicMark":
        """Return the mark of a topic by the form of its name."""
        if not topic.startswith(RETRY_PREFIX):
            return cls.NORMAL
        return cls.RETRY_V2 if "+" in topic else cls.RETRY

    def real_topic(self, topic: str, group: str) -> str:
        """Return the topic a message of this mark is stored in."""
        if self is TopicMark.NORMAL:
            return topic
        return f"{RETRY_PREFIX}{group}{'_' if self is TopicMark.RETRY else '+'}{topic}"


class PopHandle(Struct, frozen=True, kw_only=True):
    """The location and terms of a popped message, for the broker to find it again."""

    start_offset: int  # of the first message taken together with this one
    pop_time_ms: int
    invisible_time_ms: int
    revive_queue_id: int
    mark: TopicMark
    broker_name: str
    queue_id: int
    queue_offset: int | None = None

    @classmethod
    def parse(cls, text: str) -> "PopHandle":
        """Read a handle, or raise `HeaderMalformed`.

        Parts after the eighth are ignored: proxies add the message's commit log offset.
        """
        parts = java_split(text, " ")
        if len(parts) < 7:
            raise HeaderMalformed(f"a pop handle needs at least 7 parts, not {len(parts)}")
        return cls(
            start_offset=_long(parts[0]),
            pop_time_ms=_long(parts[1]),
            invisible_time_ms=_long(parts[2]),
            revive_queue_id=_int(parts[3]),
            mark=_mark(parts[4]),
            broker_name=parts[5],
            queue_id=_int(parts[6]),
            queue_offset=_long(parts[7]) if len(parts) > 7 else None,
        )

    def __str__(self) -> str:
        text = (
            f"{self.start_offset} {self.pop_time_ms} {self.invisible_time_ms} "
            f"{self.revive_queue_id} {self.mark._value_} {self.broker_name} {self.queue_id}"
        )
        return text if self.queue_offset is None else f"{text} {self.queue_offset}"

    @property
    def is_ordered(self) -> bool:
        """Whether the message was taken in order."""
        return self.revive_queue_id == ORDERED_REVIVE_QUEUE


class PopQueue(NamedTuple):
    """A queue that messages were taken from."""

    mark: TopicMark
    queue_id: int


class PopPlace(NamedTuple):
    """One message's place in such a queue."""

    mark: TopicMark
    queue_id: int
    queue_offset: int


OrderCounts = Mapping[PopQueue | PopPlace, int]


def write_start_offsets(offsets: Mapping[PopQueue, int]) -> str:
    """Write `startOffsetInfo`: the first offset taken from each queue."""
    return ";".join(f"{q.mark.value} {q.queue_id} {first}" for q, first in offsets.items())


def read_start_offsets(text: str | None) -> dict[PopQueue, int]:
    """Read `startOffsetInfo`, empty if there is none; raises `HeaderMalformed`."""
    return _read("startOffsetInfo", text, _queue, _long)


def write_message_offsets(offsets: Mapping[PopQueue, Iterable[int]]) -> str:
    """Write `msgOffsetInfo`: the offsets of all messages taken, queue by queue.

    Queues without messages are left out; Java refuses to read them.
    """
    entries = ((q, ",".join(map(str, each))) for q, each in offsets.items())
    return ";".join(f"{q.mark.value} {q.queue_id} {each}" for q, each in entries if each)


def read_message_offsets(text: str | None) -> dict[PopQueue, tuple[int, ...]]:
    """Read `msgOffsetInfo`, empty if there is none; raises `HeaderMalformed`."""
    return _read("msgOffsetInfo", text, _queue, _longs)


def write_order_counts(counts: OrderCounts) -> str:
    """Write `orderCountInfo`: how often messages were taken before, by queue or by place."""
    entries = (
        (key.mark.value, f"qo{key.queue_id}%{key.queue_offset}", count)
        if isinstance(key, PopPlace)
        else (key.mark.value, key.queue_id, count)
        for key, count in counts.items()
    )
    return ";".join(f"{mark} {key} {count}" for mark, key, count in entries)


def read_order_counts(text: str | None) -> dict[PopQueue | PopPlace, int]:
    """Read `orderCountInfo`, empty if there is none; raises `HeaderMalformed`."""
    return _read("orderCountInfo", text, _queue_or_place, _int)


def order_count(counts: OrderCounts, place: PopPlace) -> int:
    """Return how often a message was popped; a count for its offset beats one for its queue."""
    count = counts.get(place)
    return counts.get(PopQueue(*place[:2]), 0) if count is None else count


def _read(
    name: str, text: str | None, key: Callable[[str, str], K], value: Callable[[str], V]
) -> dict[K, V]:
    found: dict[K, V] = {}
    for entry in java_split(text, ";") if text else ():
        parts = java_split(entry, " ")
        if len(parts) != 3:
            raise HeaderMalformed(f"{name} has the entry {entry[:40]!r}")
        where = key(parts[0], parts[1])
        if where in found:
            raise HeaderMalformed(f"{name} has two entries for {parts[0]} {parts[1][:40]}")
        found[where] = value(parts[2])
    return found


def _queue(mark: str, queue_id: str) -> PopQueue:
    return PopQueue(_mark(mark), _int(queue_id))


def _queue_or_place(mark: str, key: str) -> PopQueue | PopPlace:
    if not key.startswith("qo"):
        return _queue(mark, key)
    queue_id, _, offset = key[2:].partition("%")
    return PopPlace(_mark(mark), _int(queue_id), _long(offset))


_MARKS = {mark.value: mark for mark in TopicMark}


def _mark(text: str) -> TopicMark:
    mark = _MARKS.get(text)
    if mark is None:
        raise HeaderMalformed(f"{text[:40]!r} is not a valid topic marker")
    return mark


def _int(text: str) -> int:
    value = read_int32(text)
    if value is None:
        raise HeaderMalformed(f"{text[:40]!r} is not a 32-bit number")
    return value


def _long(text: str) -> int:
    value = read_int64(text)
    if value is None:
        raise HeaderMalformed(f"{text[:40]!r} is not a 64-bit number")
    return value


def _longs(text: str) -> tuple[int, ...]:
    if _USUAL_LONGS(text):
        return tuple(map(int, text.split(",")))
    return tuple(_long(each) for each in java_split(text, ","))


class RecallHandle(Struct, frozen=True, kw_only=True):
    """A delayed message: where it is, when it is due, and its unique key."""

    topic: str
    broker_name: str
    deliver_at_ms: int
    message_id: str

    @classmethod
    def parse(cls, text: str) -> "RecallHandle":
        """Read a handle, or raise `HeaderMalformed`. Padding may be missing, as Java allows."""
        padded = len(text) % 4 if text.endswith("=") else 0
        if padded or not _BASE64.match(text):
            raise HeaderMalformed(f"{text[:40]!r} is not a recall handle")
        try:
            raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except Error:
            raise HeaderMalformed(f"{text[:40]!r} is not a recall handle") from None
        parts = java_split(raw.decode(errors="replace"), " ")
        if len(parts) < 5 or parts[0] != _RECALL_VERSION:
            raise HeaderMalformed(f"the recall handle {text[:40]!r} is not of version 1")
        deliver_at_ms = read_int64(parts[3])
        if deliver_at_ms is None:
            raise HeaderMalformed(f"the recall handle {text[:40]!r} has no delivery time")
        return cls(
            topic=parts[1],
            broker_name=parts[2],
            deliver_at_ms=deliver_at_ms,
            message_id=parts[4],
        )

    def __str__(self) -> str:
        parts = (
            _RECALL_VERSION,
            self.topic,
            self.broker_name,
            str(self.deliver_at_ms),
            self.message_id,
        )
        return urlsafe_b64encode(" ".join(parts).encode()).decode()
