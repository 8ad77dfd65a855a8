"""Where a queue starts that this member takes over.

Knows the rule of `ConsumeFromWhere` and what the offset store may answer; not how it is asked.
"""

import msgspec

from pocketmq.balance.consumer.instructions import (
    AskMaxOffset,
    ReadOffset,
    SearchOffset,
    SkipQueue,
    SkipReason,
    UseOffset,
)
from pocketmq.balance.profile import Profile
from pocketmq.errors import ResponseCode
from pocketmq.model.kinds import ConsumeFromWhere, ConsumeType
from pocketmq.model.names import is_retry_topic
from pocketmq.model.queue import MessageQueue

NO_OFFSET = -1
"""The store answered: this group has no offset for the queue."""
OFFSET_UNKNOWN = -2
"""The store could not be asked."""

_LAST = frozenset(
    {
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST,
        ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET,
        ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET,
    }
)
_DEPRECATED = _LAST - {ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET}


class StartRule(msgspec.Struct, frozen=True):
    """Where a group without an offset begins, and which kind of consumer asks."""

    consume_from: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    timestamp_ms: int = 0
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY


StartStep = UseOffset | AskMaxOffset | SearchOffset | SkipQueue


def read_step(queue: MessageQueue, rule: StartRule) -> ReadOffset:
    """Tell how to read the group's offset: pull consumers trust their memory first."""
    return ReadOffset(queue, memory_first=rule.consume_type is ConsumeType.CONSUME_ACTIVELY)


def offset_after_refusal(profile: Profile, code: int) -> int:
    """Say what a broker's refusal to tell the offset means: none stored, or unknown.

    4.x takes every refusal as 'none stored', 5.x only QUERY_NOT_FOUND. A broken connection or a
    timeout is `OFFSET_UNKNOWN` in both.
    """
    if profile.refusal_means_no_offset or code == ResponseCode.QUERY_NOT_FOUND:
        return NO_OFFSET
    return OFFSET_UNKNOWN


def start_step(queue: MessageQueue, stored: int, rule: StartRule) -> StartStep:
    """Decide from the stored offset (or `NO_OFFSET`, `OFFSET_UNKNOWN`) where the queue starts."""
    if rule.consume_type is ConsumeType.CONSUME_ACTIVELY and rule.consume_from in _DEPRECATED:
        return SkipQueue(
            queue, SkipReason.OFFSET_UNKNOWN
        )  # Java's pull consumer knows three values
    if stored >= 0:
        return UseOffset(queue, stored)
    if stored != NO_OFFSET:
        return SkipQueue(queue, SkipReason.OFFSET_UNKNOWN)
    retry = is_retry_topic(queue.topic)
    if rule.consume_from in _LAST:
        return UseOffset(queue, 0) if retry else AskMaxOffset(queue)
    if rule.consume_from is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
        return AskMaxOffset(queue) if retry else SearchOffset(queue, rule.timestamp_ms)
    # From the first message: if the queue begins later, the broker corrects the first pull.
    return UseOffset(queue, 0)


def after_answer(queue: MessageQueue, offset: int | None) -> UseOffset | SkipQueue:
    """Decide from the broker's answer to `AskMaxOffset` or `SearchOffset`; `None` = none came."""
    if offset is None or offset < 0:
        return SkipQueue(queue, SkipReason.OFFSET_ANSWER_FAILED)
    return UseOffset(queue, offset)
