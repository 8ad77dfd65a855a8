"""The rules of delay levels: where a delayed message waits, when it is due, what it is afterwards.

Pure decisions over values and `now`. A message that asks for level n waits in queue n - 1 of
SCHEDULE_TOPIC_XXXX; beside it the queue keeps its due time instead of a tag code.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from pocketmq.broker.writing.drafts import Draft
from pocketmq.errors import ResponseCode, server_error
from pocketmq.model import TRANSACTION_MASK, SysFlag, property_names
from pocketmq.model.delay import parse_delay_levels
from pocketmq.model.names import HALF_TOPIC, SCHEDULE_TOPIC
from pocketmq.protocol import RecordView
from pocketmq.protocol.header import read_int32
from pocketmq.protocol.property_text import find_property
from pocketmq.protocol.records import Record
from pocketmq.store import TagRule

_TIMERS = (
    property_names.TIMER_DELIVER_MS,
    property_names.TIMER_DELAY_SEC,
    property_names.TIMER_DELAY_MS,
)
_DELAYABLE = (0, int(SysFlag.COMMITTED))
_UNKNOWN_LEVEL_MS = 1000


class DelayLevels(msgspec.Struct, frozen=True):
    """A broker's levels, in milliseconds; level 1 is the first."""

    delays_ms: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> "DelayLevels":
        """Read `messageDelayLevel`. Raises `InvalidInput`."""
        return cls(tuple([int(seconds * 1000) for seconds in parse_delay_levels(text)]))

    def due_ms(self, level: int, stored_ms: int) -> int:
        """Return when a stored message is due; an unknown level means a second, as in Java."""
        known = 0 < level <= len(self.delays_ms)
        return stored_ms + (self.delays_ms[level - 1] if known else _UNKNOWN_LEVEL_MS)

    def wait_ms(self, level: int, due_ms: int, now_ms: int) -> int:
        """Return how long a message still has to wait, 0 if it is due.

        If that were longer than its level the clock was set back, and it counts as due (Java's
        rule). A level that is no longer configured keeps its due time.
        """
        wait = due_ms - now_ms
        if wait <= 0 or (level <= len(self.delays_ms) and wait > self.delays_ms[level - 1]):
            return 0
        return wait


def asked_level(properties: dict[str, str]) -> int:
    """Return the delay level a message asks for, 0 if none.

    Raises `ServerError` if it is not a number.
    """
    text = properties.get(property_names.DELAY_LEVEL)
    if text is None:
        return 0
    level = read_int32(text)
    if level is None:
        raise server_error(
            ResponseCode.SYSTEM_ERROR,
            f'java.lang.NumberFormatException: For input string: "{text[:100]}"',
        )
    return level


def hold_back(draft: Draft, levels: DelayLevels, now_ms: int) -> bool:
    """Send a draft to the queue of the level it asks for; return whether it asks for one.

    Raises `ServerError` if its level is not a number.
    """
    level = asked_level(draft.properties)
    if level <= 0 or draft.sys_flag & TRANSACTION_MASK not in _DELAYABLE:
        return False
    if draft.topic == HALF_TOPIC:  # 5.x delays it and discards it; 4.9 ignores the delay
        del draft.properties[property_names.DELAY_LEVEL]
        return False
    if level > len(levels.delays_ms):
        level = len(levels.delays_ms)
        draft.properties[property_names.DELAY_LEVEL] = str(level)
    for name in _TIMERS:
        draft.properties.pop(name, None)
    draft.properties[property_names.REAL_TOPIC] = draft.topic
    draft.properties[property_names.REAL_QUEUE_ID] = str(draft.queue_id)
    draft.topic, draft.queue_id = SCHEDULE_TOPIC, level - 1
    draft.tag = levels.due_ms(level, now_ms)
    return True


def tag_rule(levels: DelayLevels) -> TagRule:
    """Build the rule by which recovery finds when a delayed record is due."""

    def due_ms(record: RecordView) -> int:
        return levels.due_ms(record.queue_id + 1, record.store_timestamp_ms)

    return due_ms


class DueMessage(NamedTuple):
    """A delayed message that is due, as it goes to its queue."""

    topic: str
    queue_id: int
    record: Record


def real_place(properties: bytes) -> tuple[str, int] | None:
    """Return topic and queue a delayed message was sent to; None if it does not say."""
    topic = find_property(properties, b"REAL_TOPIC")
    queue_id = read_int32(
        (find_property(properties, b"REAL_QID") or b"").decode("utf-8", "replace")
    )
    if topic is None or queue_id is None or queue_id < 0 or topic == HALF_TOPIC.encode():
        return None
    return topic.decode("utf-8", "replace"), queue_id


def delivery_of(waiting: RecordView) -> DueMessage | None:
    """Return what a waiting message becomes: the same, in the topic and queue it was sent to.

    All of its properties stay, DELAY and REAL_TOPIC among them, as RocketMQ leaves them. None for
    a record that does not say where it belongs.
    """
    text = waiting.property_bytes
    place = real_place(text)
    if place is None:
        return None
    topic, queue_id = place
    return DueMessage(topic, queue_id, copy_to(waiting, topic, queue_id, text))


def copy_to(waiting: RecordView, topic: str, queue_id: int, text: bytes, origin: int = 0) -> Record:
    """Return a waiting message for another place; `text` is its properties."""
    return Record(
        topic=topic.encode(),
        body=waiting.stored_body,
        property_bytes=text,
        queue_id=queue_id,
        flag=waiting.flag,
        sys_flag=waiting.sys_flag,
        born_timestamp_ms=waiting.born_timestamp_ms,
        born_host=waiting.born_host_bytes,
        reconsume_times=waiting.reconsume_times,
        prepared_transaction_offset=origin,
        body_crc=waiting.body_crc,
    )


def count_due(levels: DelayLevels, level: int, dues_ms: Sequence[int], now_ms: int) -> int:
    """Return how many of a level's next messages are due: all before the first that is not."""
    for count, due_ms in enumerate(dues_ms):
        if levels.wait_ms(level, due_ms, now_ms):
            return count
    return len(dues_ms)
