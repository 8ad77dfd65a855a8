"""Orderly consuming: when the next batch may be taken, and what a handler's answer means.

One consume task runs for each queue. It takes batch after batch while it has the broker's lock,
and ends when nothing is cached, the lock is lost, or a batch has to wait.
"""

from collections.abc import Collection, Sequence
from enum import Enum
from typing import TypeVar

import msgspec

from pocketmq.balance.consumer.handling import RetriedMessage
from pocketmq.balance.consumer.instructions import Instruction, UpdateOffset
from pocketmq.balance.profile import Profile
from pocketmq.model import MessageModel, MessageQueue

UNLIMITED_RECONSUME = 2**31 - 1
SUSPEND_DEFAULT = 1.0
SUSPEND_MIN = 0.01
SUSPEND_MAX = 30.0
RELOCK_FIRST = 0.1
RELOCK_INSIDE = 0.01
RESUME_LOCKED = 0.01
RESUME_NOT_LOCKED = 3.0

M = TypeVar("M", bound=RetriedMessage)


class OrderlyStatus(Enum):
    """An orderly handler's result. COMMIT and ROLLBACK belong to `auto_commit=False`."""

    SUCCESS = "SUCCESS"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"


class TakeBatch(Instruction, frozen=True):
    """Take a batch and hand it to the handler, unless the queue is dropped meanwhile."""


class EndTask(Instruction, frozen=True):
    """End the consume task."""


class ConsumeLater(Instruction, frozen=True):
    """End the task and start another in `after` seconds."""

    queue: MessageQueue
    after: float


class RelockThenConsume(Instruction, frozen=True):
    """End the task; in `after` seconds ask for the lock, then `after_relock`."""

    queue: MessageQueue
    after: float


class CommitBatch(Instruction, frozen=True):
    """`ProcessQueue.commit`, then note the offset it gives with `commit_step`."""

    queue: MessageQueue


class RollBackBatch(Instruction, frozen=True):
    """`ProcessQueue.roll_back`."""

    queue: MessageQueue


class ConsumeBatchAgain(Instruction, frozen=True):
    """`ProcessQueue.consume_again` with the batch."""

    queue: MessageQueue


class RaiseReconsume(Instruction, frozen=True):
    """Add one to the reconsume count of the messages at these offsets, in memory."""

    offsets: tuple[int, ...]


class WarnWrongStatus(Instruction, frozen=True):
    """Log that COMMIT and ROLLBACK mean SUCCESS while commits are automatic."""

    status: OrderlyStatus


class TaskFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A consume task before a batch. `began` is `None` until it took its first."""

    queue: MessageQueue
    model: MessageModel
    dropped: bool
    locked: bool
    lock_expired: bool
    now: float
    began: float | None = None


def next_batch(
    profile: Profile, facts: TaskFacts
) -> TakeBatch | EndTask | ConsumeLater | RelockThenConsume:
    """Decide whether a consume task may take a batch now."""
    if facts.dropped:
        return EndTask()
    needs_lock = facts.model is MessageModel.CLUSTERING
    if needs_lock and (not facts.locked or facts.lock_expired):
        return RelockThenConsume(
            facts.queue, RELOCK_FIRST if facts.began is None else RELOCK_INSIDE
        )
    if facts.began is not None and facts.now - facts.began > profile.consume_continuously:
        return ConsumeLater(facts.queue, RESUME_LOCKED)  # let other queues use the worker
    return TakeBatch()


def after_relock(queue: MessageQueue, *, granted: bool) -> ConsumeLater:
    """Return when to resume after the lock was requested; a stopping consumer is not granted."""
    return ConsumeLater(queue, RESUME_LOCKED if granted else RESUME_NOT_LOCKED)


class OrderlyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A handler's answer to a batch; `status` is `None` when it raised or returned nothing.

    `suspend` is the wait that the handler asked for, `None` for the consumer's setting.
    """

    queue: MessageQueue
    status: OrderlyStatus | None
    auto_commit: bool = True
    suspend: float | None = None
    suspend_default: float = SUSPEND_DEFAULT
    max_reconsume: int = -1

    @property
    def suspends(self) -> bool:
        """Whether the batch is to be tried again."""
        return self.status in (None, OrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT)


class OrderlyDecision(msgspec.Struct, frozen=True):
    """What to do about a batch, and whether the task continues with `next_batch`."""

    instructions: tuple[Instruction, ...]
    go_on: bool


def exhausted(answer: OrderlyAnswer, messages: Sequence[M]) -> tuple[M, ...]:
    """Return the messages of a suspended batch that failed too often to be retried.

    Send each to the group's retry topic, where the broker makes it a dead letter, before
    `after_handler`. Its delay level is `model.delay.retry_level` of its count, its RECONSUME_TIME
    the count plus `Profile.exhausted_reconsume_step`.
    """
    if not answer.suspends:
        return ()
    limit = max_reconsume_times(answer.max_reconsume)
    return tuple(message for message in messages if message.reconsume_times >= limit)


def after_handler(
    answer: OrderlyAnswer, messages: Sequence[M], not_sent: Collection[int] = ()
) -> OrderlyDecision:
    """Decide about a batch. `not_sent` are offsets of exhausted messages that could not be sent."""
    queue, status = answer.queue, answer.status
    if answer.suspends:
        return _after_suspend(answer, messages, not_sent)
    if answer.auto_commit:
        wrong = status in (OrderlyStatus.COMMIT, OrderlyStatus.ROLLBACK)
        warn = (WarnWrongStatus(status),) if wrong and status is not None else ()
        return OrderlyDecision((*warn, CommitBatch(queue)), go_on=True)
    if status is OrderlyStatus.COMMIT:
        return OrderlyDecision((CommitBatch(queue),), go_on=True)
    if status is OrderlyStatus.ROLLBACK:
        later = ConsumeLater(queue, _suspension(answer))
        return OrderlyDecision((RollBackBatch(queue), later), go_on=False)
    return OrderlyDecision((), go_on=True)  # SUCCESS waits for a COMMIT


def commit_step(queue: MessageQueue, offset: int, *, dropped: bool) -> UpdateOffset | None:
    """Return what to note after `ProcessQueue.commit` returned; nothing for a revoked queue."""
    if offset < 0 or dropped:
        return None
    # Only the owner of the lock commits, one batch after another: its offset is the truth, also one
    # that is lower, as after a reset.
    return UpdateOffset(queue, offset, increase_only=False)


def max_reconsume_times(configured: int) -> int:
    """Return how often a message may fail before it becomes a dead letter; −1 means never."""
    return UNLIMITED_RECONSUME if configured == -1 else configured


def _after_suspend(
    answer: OrderlyAnswer, messages: Sequence[M], not_sent: Collection[int]
) -> OrderlyDecision:
    queue = answer.queue
    limit = max_reconsume_times(answer.max_reconsume)
    again = tuple(
        message.queue_offset
        for message in messages
        if message.reconsume_times < limit or message.queue_offset in not_sent
    )
    if again:
        later = ConsumeLater(queue, _suspension(answer))
        return OrderlyDecision(
            (RaiseReconsume(again), ConsumeBatchAgain(queue), later), go_on=False
        )
    return OrderlyDecision((CommitBatch(queue),) if answer.auto_commit else (), go_on=True)


def _suspension(answer: OrderlyAnswer) -> float:
    wanted = answer.suspend_default if answer.suspend is None else answer.suspend
    return min(max(wanted, SUSPEND_MIN), SUSPEND_MAX)
