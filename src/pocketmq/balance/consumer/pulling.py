"""The pull loop of a push consumer: whether to pull now, and what an answer means.

Each owned queue has one pull request that loops: pull, cache, pull again. These functions decide
how long it waits and what happens to offsets on the way.
"""

from enum import Enum

import msgspec

from pocketmq.balance.consumer import instructions
from pocketmq.balance.consumer.limits import QueueLimits
from pocketmq.balance.profile import Profile
from pocketmq.errors import ResponseCode
from pocketmq.model import MessageModel, MessageQueue

PULL_BATCH = 32
PULL_BYTES = 256 * 1024
CATCH_UP_BATCH = 512
"""Messages to pull at once from a backlog; Apache's brokers return at most 32 by default."""
CATCH_UP_BYTES = 1024 * 1024
BROKER_SUSPEND = 15.0
"""Seconds a broker may suspend a pull that finds nothing (long polling)."""
PULL_TIMEOUT = 30.0
RETRY_AFTER_ERROR = 1.0
RETRY_WHEN_PAUSED = 1.0
RETRY_WHEN_FULL = 0.05
RETRY_WHEN_BROKER_BUSY = 0.02


class PullStatus(Enum):
    """A broker's answer to a pull."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


class WaitReason(Enum):
    """Why a pull is delayed."""

    NOT_RUNNING = "the consumer is not running"
    PAUSED = "the consumer is paused"
    TOO_MANY_MESSAGES = "too many messages are cached"
    TOO_MANY_BYTES = "too many bytes are cached"
    SPAN_TOO_LONG = "the first cached message is too far behind the last"
    NOT_LOCKED = "this member does not have the broker's lock"
    OFFSET_UNKNOWN = "the start offset is unknown"
    NOT_SUBSCRIBED = "the topic's subscription is missing"


class PullNow(instructions.Instruction, frozen=True):
    """Pull."""


class StopPulling(instructions.Instruction, frozen=True):
    """End the queue's pull request."""


class PullLater(instructions.Instruction, frozen=True):
    """Check again in `after` seconds."""

    after: float
    reason: WaitReason


class PullAgain(instructions.Instruction, frozen=True):
    """Pull from this offset in `after` seconds."""

    queue: MessageQueue
    offset: int
    after: float = 0.0


class CacheMessages(instructions.Instruction, frozen=True):
    """Put what was found into the process queue and submit it to the handlers."""

    queue: MessageQueue


class ReportOddOffsets(instructions.Instruction, frozen=True):
    """Log that a broker returned offsets before the requested one."""

    queue: MessageQueue
    asked: int
    next_offset: int
    first_offset: int | None


class CorrectOffset(instructions.Instruction, frozen=True):
    """In `after` seconds carry out `offset_correction` for this queue."""

    queue: MessageQueue
    offset: int
    after: float


class PullFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts for `before_pull`. Note the time of the pull first, unless the queue is dropped."""

    queue: MessageQueue
    limits: QueueLimits
    dropped: bool = False
    running: bool = True
    paused: bool = False
    count: int = 0
    size: int = 0
    span: int = 0
    orderly: bool = False
    locked: bool = False
    start_checked: bool = False
    """Orderly: whether the offset was read again after the queue was locked."""
    delayed: bool = False
    """Concurrent: whether the offset is from before a start delay."""
    subscribed: bool = True
    retry_after_error: float = RETRY_AFTER_ERROR


class PullAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to a pull, without messages of other tags."""

    queue: MessageQueue
    status: PullStatus
    asked: int
    next_offset: int
    first_offset: int | None = None
    """The offset of the first message left; `None` = none is."""
    cached_count: int = 0
    """Messages in the process queue when the answer came."""
    pull_interval: float = 0.0


BeforePull = PullNow | StopPulling | PullLater | instructions.ReadOffset


def before_pull(facts: PullFacts) -> BeforePull:
    """Decide whether to pull now.

    `ReadOffset` asks an orderly consumer to read its start offset again before the first pull
    under the lock (through `offsets.start_step`), to set `start_checked` and call again;
    if that fails: `start_check_failed`. It asks a concurrent one to do so after a start delay;
    without a stored offset that one starts where it would have started without the delay.
    """
    if facts.dropped:
        return StopPulling()
    if not facts.running:
        return PullLater(facts.retry_after_error, WaitReason.NOT_RUNNING)
    if facts.paused:
        return PullLater(RETRY_WHEN_PAUSED, WaitReason.PAUSED)
    if facts.limits.too_many(facts.count, 0):
        return PullLater(RETRY_WHEN_FULL, WaitReason.TOO_MANY_MESSAGES)
    if facts.limits.too_many(0, facts.size):
        return PullLater(RETRY_WHEN_FULL, WaitReason.TOO_MANY_BYTES)
    if not facts.orderly and facts.span > facts.limits.span:
        return PullLater(RETRY_WHEN_FULL, WaitReason.SPAN_TOO_LONG)
    if facts.orderly and not facts.locked:
        return PullLater(facts.retry_after_error, WaitReason.NOT_LOCKED)
    if (facts.orderly and not facts.start_checked) or facts.delayed:
        return instructions.ReadOffset(facts.queue)
    if not facts.subscribed:
        return PullLater(facts.retry_after_error, WaitReason.NOT_SUBSCRIBED)
    return PullNow()


def has_capacity(limits: QueueLimits, count: int, size: int, span: int) -> bool:
    """Return whether the cache of a concurrent consumer lets it pull: as `before_pull` decides."""
    return span <= limits.span and not limits.too_many(count, size)


def pull_size(batch: int | None, waiting: int, capacity: int) -> int:
    """Return the number of messages to pull: `batch`, or Java's, or more to catch up a backlog.

    `waiting` are those at the broker as far as known, `capacity` those the cache may still take.
    """
    if batch is not None:
        return batch
    return max(PULL_BATCH, min(waiting, capacity, CATCH_UP_BATCH))


def start_check_failed(facts: PullFacts) -> PullLater:
    """Return how long to wait when the offset could not be read again."""
    return PullLater(facts.retry_after_error, WaitReason.OFFSET_UNKNOWN)


class CommitWithPull(msgspec.Struct, frozen=True):
    """The group's offset that a pull request carries; the broker commits it if `enabled`."""

    enabled: bool
    offset: int


def commit_with_pull(model: MessageModel, noted: int, *, to_slave: bool) -> CommitWithPull:
    """Decide whether a pull carries the noted offset (−1 = none) to be committed with it."""
    if model is not MessageModel.CLUSTERING:
        return CommitWithPull(False, 0)
    return CommitWithPull(noted > 0 and not to_slave, noted)


def after_pull(profile: Profile, answer: PullAnswer) -> tuple[instructions.Instruction, ...]:
    """Return what a broker's answer to a pull leads to."""
    queue, next_offset = answer.queue, answer.next_offset
    again = PullAgain(queue, next_offset)
    match answer.status:
        case PullStatus.FOUND:
            odd = _odd_offsets(answer)
            if answer.first_offset is None:
                return again, *odd
            spaced = PullAgain(queue, next_offset, max(0.0, answer.pull_interval))
            return CacheMessages(queue), spaced, *odd
        case PullStatus.NO_NEW_MSG | PullStatus.NO_MATCHED_MSG:
            if answer.cached_count == 0:  # nothing unfinished: what did not match is behind us
                return instructions.UpdateOffset(queue, next_offset, increase_only=True), again
            return (again,)
        case PullStatus.OFFSET_ILLEGAL:
            correct = CorrectOffset(queue, next_offset, profile.offset_illegal_delay)
            return instructions.DropQueue(queue), correct


def offset_correction(
    profile: Profile, queue: MessageQueue, offset: int
) -> tuple[instructions.Instruction, ...]:
    """Return how to correct a queue that was pulled outside the offsets its broker has.

    The queue is released with the broker's offset committed; a later rebalance takes it again.
    """
    note: instructions.Instruction = instructions.UpdateOffset(queue, offset, increase_only=False)
    if profile.offset_illegal_freezes:  # a handler that finishes late must not undo it
        note = instructions.FreezeOffset(queue, offset)
    steps = (
        note,
        instructions.PersistOffset(queue),
        instructions.RemoveQueue(queue),
        instructions.DropQueue(queue),
        instructions.ReleaseQueue(queue),
    )
    return (
        (*steps, instructions.RebalanceAgain(0.0)) if profile.offset_illegal_rebalances else steps
    )


def after_pull_error(
    queue: MessageQueue, asked: int, code: int | None, retry_after: float = RETRY_AFTER_ERROR
) -> PullAgain:
    """Return when to try again after a refusal with `code`, or no answer at all."""
    busy = code == ResponseCode.FLOW_CONTROL
    return PullAgain(queue, asked, RETRY_WHEN_BROKER_BUSY if busy else retry_after)


def _odd_offsets(answer: PullAnswer) -> tuple[instructions.Instruction, ...]:
    first = answer.first_offset
    if answer.next_offset >= answer.asked and (first is None or first >= answer.asked):
        return ()
    return (ReportOddOffsets(answer.queue, answer.asked, answer.next_offset, first),)
