"""The pull tasks of a pull consumer: one for each assigned queue, and what `poll` commits.

The application takes cached batches with `poll`; pull tasks fill the cache ahead of it. A seek
empties a queue's cache and restarts its task.
"""

import msgspec

from pocketmq.balance.consumer import pulling
from pocketmq.balance.consumer.instructions import Instruction, ReadOffset, UpdateOffset
from pocketmq.balance.consumer.limits import LitePullLimits
from pocketmq.balance.consumer.offsets import OFFSET_UNKNOWN
from pocketmq.errors import InvalidInput, ResponseCode
from pocketmq.model import MessageQueue

LITE_PULL_BATCH = 10
LITE_BROKER_SUSPEND = 20.0
LITE_PULL_TIMEOUT = 30.0
RETRY_AFTER_OFFSET_ERROR = 3.0
AUTO_COMMIT_INTERVAL = 5.0
NONE = -1
"""No offset set: a queue's seek, pull or consume offset at first."""


class AssignedState(msgspec.Struct, frozen=True):
    """The offsets of an assigned queue: where to seek, pull and commit next."""

    paused: bool = False
    pull_offset: int = NONE
    consume_offset: int = NONE
    seek_offset: int = NONE


class LitePullFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts for `before_lite_pull`. `state` is `None` when the queue is not assigned."""

    queue: MessageQueue
    state: AssignedState | None
    limits: LitePullLimits = LitePullLimits()
    cancelled: bool = False
    dropped: bool = False
    cached_batches: int = 0
    """Batches of all queues that wait for `poll`."""
    pull_batch: int = LITE_PULL_BATCH
    count: int = 0
    size: int = 0
    span: int = 0


class PullFrom(Instruction, frozen=True):
    """Pull from this offset, after taking over the queue's new state."""

    queue: MessageQueue
    offset: int
    state: AssignedState


class ScheduleTask(Instruction, frozen=True):
    """Run the queue's pull task again in `after` seconds."""

    queue: MessageQueue
    after: float = 0.0


class SetPullOffset(Instruction, frozen=True):
    """Note where the next pull starts, if the queue still has the same process queue."""

    queue: MessageQueue
    offset: int


BeforeLitePull = pulling.StopPulling | pulling.PullLater | PullFrom | ReadOffset


def before_lite_pull(facts: LitePullFacts) -> BeforeLitePull:
    """Decide whether a pull task pulls now, and from where.

    `ReadOffset` asks for the start offset (through `offsets.start_step`); then pull from it,
    or take `lite_start_failed`.
    """
    if facts.cancelled:
        return pulling.StopPulling()
    state = facts.state
    if state is None or state.paused:  # a queue that is not assigned counts as paused, as in Java
        return pulling.PullLater(pulling.RETRY_WHEN_PAUSED, pulling.WaitReason.PAUSED)
    if facts.dropped:
        return pulling.StopPulling()
    limits = facts.limits
    if facts.cached_batches * facts.pull_batch > limits.total:
        return pulling.PullLater(pulling.RETRY_WHEN_FULL, pulling.WaitReason.TOO_MANY_MESSAGES)
    if limits.queue.too_many(facts.count, 0):
        return pulling.PullLater(pulling.RETRY_WHEN_FULL, pulling.WaitReason.TOO_MANY_MESSAGES)
    if limits.queue.too_many(0, facts.size):
        return pulling.PullLater(pulling.RETRY_WHEN_FULL, pulling.WaitReason.TOO_MANY_BYTES)
    if facts.span > limits.queue.span:
        return pulling.PullLater(pulling.RETRY_WHEN_FULL, pulling.WaitReason.SPAN_TOO_LONG)
    if state.seek_offset != NONE:
        sought = state.seek_offset
        moved = msgspec.structs.replace(state, consume_offset=sought, seek_offset=NONE)
        return PullFrom(facts.queue, sought, moved)
    if state.pull_offset != NONE:
        return PullFrom(facts.queue, state.pull_offset, state)
    return ReadOffset(facts.queue, memory_first=True)


def lite_start_failed(queue: MessageQueue, stored: int) -> ScheduleTask:
    """Return when to try again after no start offset was found.

    With an unreadable store Java pulls from −1, which fails as any pull does; a broker that does
    not return the queue's end costs three seconds.
    """
    unreadable = stored <= OFFSET_UNKNOWN
    return ScheduleTask(
        queue, pulling.RETRY_AFTER_ERROR if unreadable else RETRY_AFTER_OFFSET_ERROR
    )


class LitePullAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What came back to a pull task, and the queue's state by then."""

    queue: MessageQueue
    status: pulling.PullStatus
    next_offset: int
    found: int
    """Messages left after those of other tags were taken out."""
    seek_offset: int = NONE
    cancelled: bool = False
    dropped: bool = False


def after_lite_pull(answer: LitePullAnswer) -> tuple[Instruction, ...]:
    """Return what follows an answer. A seek meanwhile makes it void, an illegal offset does not."""
    if answer.cancelled or answer.dropped:
        return (pulling.StopPulling(),)
    steps: list[Instruction] = []
    if answer.seek_offset == NONE:
        if answer.status is pulling.PullStatus.FOUND and answer.found:
            steps.append(pulling.CacheMessages(answer.queue))
        steps.append(SetPullOffset(answer.queue, answer.next_offset))
    return (*steps, ScheduleTask(answer.queue))


def after_lite_pull_error(queue: MessageQueue, code: int | None) -> ScheduleTask:
    """Return when to try again after a refusal with `code`, or no answer at all."""
    busy = code == ResponseCode.FLOW_CONTROL
    return ScheduleTask(
        queue, pulling.RETRY_WHEN_BROKER_BUSY if busy else pulling.RETRY_AFTER_ERROR
    )


class AutoCommit(msgspec.Struct, frozen=True):
    """Whether a `poll` copies the consume offsets to the offset store, and when to check next."""

    due: bool
    deadline: float


def auto_commit(deadline: float, now: float, interval: float = AUTO_COMMIT_INTERVAL) -> AutoCommit:
    """Decide at the start of a `poll`; the store itself is written by the offset timer."""
    return AutoCommit(True, now + interval) if now >= deadline else AutoCommit(False, deadline)


def commit_step(
    queue: MessageQueue, state: AssignedState | None, *, dropped: bool
) -> UpdateOffset | None:
    """Return which offset a commit notes; none if nothing was polled or the queue was revoked."""
    if state is None or state.consume_offset == NONE or dropped:
        return None
    return UpdateOffset(queue, state.consume_offset, increase_only=False)


def check_seek(offset: int, min_offset: int, max_offset: int) -> None:
    """Raise `InvalidInput` unless the queue has the offset, or ends at it."""
    if not min_offset <= offset <= max_offset:
        raise InvalidInput(
            f"cannot seek to offset {offset}; the queue has offsets {min_offset} to {max_offset}"
        )
