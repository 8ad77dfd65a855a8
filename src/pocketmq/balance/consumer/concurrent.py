"""What a concurrent handler's answer means: what is sent back, retried here, and committed.

Three steps with the shell's work between them: `judge` the answer, send messages back, `settle`
with what could not be sent, remove from the process queue, `commit_step`.

A handler that never returns would keep its queue's offset back for ever. So every `consumeTimeout`
the `ExpirySweep` sends the first overdue messages back to the broker, to be delivered again later.
Orderly consumers are not swept.
"""

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Generic

import msgspec

from pocketmq.balance.consumer.instructions import UpdateOffset
from pocketmq.balance.consumer.offset_runs import M
from pocketmq.balance.consumer.process_queue import ProcessQueue
from pocketmq.balance.profile import Profile
from pocketmq.model import MessageModel, MessageQueue

ACK_ALL = 2**31 - 1
DEFAULT_MAX_RECONSUME = 16
SEND_BACK_TIMEOUT = 5.0
NEVER_AGAIN = -1
"""A delay level: straight to the dead-letter topic. 0 lets the broker choose."""
SWEEP_LIMIT = 16
SWEEP_DELAY_LEVEL = 3


class ConcurrentStatus(Enum):
    """A concurrent handler's result."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"


class ConcurrentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A handler's answer to a batch; `status` is `None` when it raised or returned nothing."""

    status: ConcurrentStatus | None
    ack_index: int = ACK_ALL
    """With success: messages behind this index failed nevertheless."""
    dropped: bool = False
    """Whether the queue was dropped by the time the handler answered."""


class BatchVerdict(msgspec.Struct, Generic[M], frozen=True):
    """What becomes of a batch's messages.

    `ignored` means the queue was revoked: nothing is sent, removed or committed, because its next
    owner gets all of it. Otherwise `succeeded` and `failed` are counted, failed messages are sent
    back (clustering) or discarded with a log line (broadcasting). `gone` were removed by the expiry
    sweep, which has sent them back already.
    """

    ignored: bool
    succeeded: int = 0
    failed: int = 0
    send_back: tuple[M, ...] = ()
    given_up: tuple[M, ...] = ()
    gone: tuple[M, ...] = ()


class Settlement(msgspec.Struct, Generic[M], frozen=True):
    """What to remove from the process queue, and what to hand out again in `RESUBMIT_AFTER`.

    The reconsume count of those to hand out again goes up by one.
    """

    remove: tuple[M, ...]
    again: tuple[M, ...] = ()


def judge(
    profile: Profile,
    model: MessageModel,
    messages: Sequence[M],
    answer: ConcurrentAnswer,
    cached: Collection[int] | None = None,
) -> BatchVerdict[M]:
    """Decide what becomes of a batch. `cached` are those of its offsets still in the process queue.

    None means all are.
    """
    if answer.dropped:
        return BatchVerdict(ignored=True)
    if not messages:
        return BatchVerdict(ignored=False)
    success = answer.status is ConcurrentStatus.CONSUME_SUCCESS
    accepted = min(max(answer.ack_index, -1), len(messages) - 1) + 1 if success else 0
    failed = tuple(messages[accepted:])
    if model is MessageModel.BROADCASTING:
        return BatchVerdict(False, accepted, len(failed), given_up=failed)
    gone: tuple[M, ...] = ()
    if profile.send_back_checks_cache and cached is not None:
        gone = tuple(message for message in failed if message.queue_offset not in cached)
        failed = tuple(message for message in failed if message.queue_offset in cached)
    return BatchVerdict(False, accepted, len(messages) - accepted, send_back=failed, gone=gone)


def settle(messages: Sequence[M], not_sent: Sequence[M]) -> Settlement[M]:
    """Decide after sending back; what could not be sent stays cached and is retried here."""
    if not not_sent:
        return Settlement(tuple(messages))
    again = {message.queue_offset for message in not_sent}
    remove = tuple(message for message in messages if message.queue_offset not in again)
    return Settlement(remove, tuple(not_sent))


def commit_step(queue: MessageQueue, offset: int, *, dropped: bool) -> UpdateOffset | None:
    """Return what to note after `ProcessQueue.remove` returned; nothing for a revoked queue."""
    if offset < 0 or dropped:
        return None
    return UpdateOffset(queue, offset, increase_only=True)


def max_reconsume_times(configured: int) -> int:
    """Return how often a message may fail before it becomes a dead letter; −1 means the default."""
    return DEFAULT_MAX_RECONSUME if configured == -1 else configured


class ExpirySweep(Generic[M]):
    """One sweep over one queue: send `next()` back, report `sent`, until `next()` returns None."""

    def __init__(self, queue: ProcessQueue[M], timeout: float) -> None:
        self._queue = queue
        self._timeout = timeout
        self._tries = min(len(queue), SWEEP_LIMIT)

    def next(self, now: float) -> M | None:
        """Return the message to send back at level 3 now; a failed one is returned again."""
        if self._tries == 0:
            return None
        self._tries -= 1
        return self._queue.first_if_expired(self._timeout, now)

    def sent(self, message: M, now: float) -> None:
        """Remove a message that was sent back, unless its handler finished it meanwhile.

        The offset is committed with the next result, not by the sweep.
        """
        queue = self._queue
        if len(queue) and queue.first_offset() == message.queue_offset:
            queue.remove((message,), now)
