"""Instructions to a shell about queues, locks, offsets and the session.

Instructions are values: they compare by content, so a decision can be tested as an exact list.
Those about pulling and consuming live in the modules that return them. Every `after` and `timeout`
is in seconds.
"""

from enum import Enum

import msgspec

from pocketmq.model import MessageQueue, MessageRequestMode


class Instruction(msgspec.Struct, frozen=True):
    """One thing to do."""


class RevokeReason(Enum):
    """Why a queue is revoked."""

    NOT_MINE = "not in this member's assignment any more"
    PULL_EXPIRED = "not pulled for too long"
    UNSUBSCRIBED = "its topic was unsubscribed"


class SkipReason(Enum):
    """Why a queue of the target is not taken in this round."""

    LOCK_DENIED = "lock denied: another member has it, or the broker did not respond"
    OFFSET_UNKNOWN = "the stored offset could not be read"
    OFFSET_ANSWER_FAILED = "the broker did not return the queue's offset"
    STILL_OWNED = "this member has not released it yet"


# The decision of one topic, in the large.


class RevokeQueue(Instruction, frozen=True):
    """Drop a queue and release it."""

    queue: MessageQueue
    reason: RevokeReason
    mode: MessageRequestMode = MessageRequestMode.PULL


class LockQueue(Instruction, frozen=True):
    """Ask the queue's master for the group's lock; report `LockAnswered`."""

    queue: MessageQueue


class AcquireQueue(Instruction, frozen=True):
    """Find the queue's start offset and start to pull it."""

    queue: MessageQueue


class AcquirePopQueue(Instruction, frozen=True):
    """Start to pop from a queue; the broker keeps its offset."""

    queue: MessageQueue


# The table of owned queues.


class DropQueue(Instruction, frozen=True):
    """Mark the queue dropped: its pulling ends, what its handlers still return is ignored."""

    queue: MessageQueue
    mode: MessageRequestMode = MessageRequestMode.PULL


class AddQueue(Instruction, frozen=True):
    """Own the queue with a new, empty process queue that counts as locked."""

    queue: MessageQueue
    mode: MessageRequestMode = MessageRequestMode.PULL


class RemoveQueue(Instruction, frozen=True):
    """Forget the queue's process queue."""

    queue: MessageQueue
    mode: MessageRequestMode = MessageRequestMode.PULL


class ClearQueue(Instruction, frozen=True):
    """Throw away everything the process queue caches."""

    queue: MessageQueue


class ReleaseQueue(Instruction, frozen=True):
    """Carry out the steps of `release.begin_release` for this queue."""

    queue: MessageQueue


class SkipQueue(Instruction, frozen=True):
    """Leave the queue to a later round."""

    queue: MessageQueue
    reason: SkipReason


class AwaitIdle(Instruction, frozen=True):
    """Wait until no handler works on the queue; report `QueueIdled`, idle or not."""

    queue: MessageQueue
    timeout: float


# Locks of orderly consumers.


class MarkLocked(Instruction, frozen=True):
    """Note that the broker grants the lock, as of now."""

    queue: MessageQueue


class MarkUnlocked(Instruction, frozen=True):
    """Note that this member does not have the lock."""

    queue: MessageQueue


class UnlockQueue(Instruction, frozen=True):
    """Release the lock by a one-way request, in `after` seconds."""

    queue: MessageQueue
    after: float = 0.0


class CountUnlockTry(Instruction, frozen=True):
    """Count one more failed attempt to release."""

    queue: MessageQueue


class LockBatch(Instruction, frozen=True):
    """Ask one broker for the locks of these queues."""

    broker_name: str
    queues: tuple[MessageQueue, ...]


class UnlockBatch(Instruction, frozen=True):
    """Release the locks of these queues at one broker, and wait for the answer."""

    broker_name: str
    queues: tuple[MessageQueue, ...]


# Offsets.


class ReadOffset(Instruction, frozen=True):
    """Read the group's offset from the store, or from memory first; report `OffsetRead`."""

    queue: MessageQueue
    memory_first: bool = False


class AskMaxOffset(Instruction, frozen=True):
    """Ask the broker where the queue ends; report `OffsetAnswered`."""

    queue: MessageQueue


class SearchOffset(Instruction, frozen=True):
    """Ask the broker for the offset of a store time; report `OffsetAnswered`."""

    queue: MessageQueue
    timestamp_ms: int


class UseOffset(Instruction, frozen=True):
    """Start the queue at this offset."""

    queue: MessageQueue
    offset: int


class UpdateOffset(Instruction, frozen=True):
    """Note the offset to commit next, backwards too unless `increase_only`."""

    queue: MessageQueue
    offset: int
    increase_only: bool


class FreezeOffset(Instruction, frozen=True):
    """Note the offset and ignore later notes until it is forgotten."""

    queue: MessageQueue
    offset: int


class PersistOffset(Instruction, frozen=True):
    """Send the noted offset to the store, one-way."""

    queue: MessageQueue


class ForgetOffset(Instruction, frozen=True):
    """Drop the noted offset from memory."""

    queue: MessageQueue


# After the queues are settled.


class StartPulling(Instruction, frozen=True):
    """Pull the queue from this offset, first in `after` seconds.

    After such a wait the stored offset is read again, and counts if there is one: the last owner
    may have committed meanwhile, and what it handled would be handled twice. (Java does not.)
    """

    queue: MessageQueue
    offset: int
    after: float


class StartPopping(Instruction, frozen=True):
    """Pop from the queue, first in `after` seconds.

    A group that never popped starts at the first message, or with those to come.
    """

    queue: MessageQueue
    from_first: bool
    after: float


class RebalanceAgain(Instruction, frozen=True):
    """Wake the rebalance schedule in `after` seconds."""

    after: float


class BumpSubscription(Instruction, frozen=True):
    """Set a new version of the topic's subscription."""

    topic: str
    version_ms: int


class SetQueueLimits(Instruction, frozen=True):
    """Use these flow-control thresholds for every queue; `None` leaves one as it is."""

    count: int | None
    size_mib: int | None


class SendHeartbeats(Instruction, frozen=True):
    """Send a heartbeat to every known broker, unless one is in flight."""


class SendHeartbeatTo(Instruction, frozen=True):
    """Send a heartbeat to this one broker address; report `ChannelHeartbeatSent` if it worked."""

    address: str


class AssignQueues(Instruction, frozen=True):
    """Let a pull consumer's assignment of the topic be exactly these.

    Others are dropped and their pull tasks cancelled; new ones use the process queue that exists
    for them (or a new one) and start a pull task in `after` seconds.
    """

    topic: str
    queues: tuple[MessageQueue, ...]
    after: float = 0.0


class NotifyListener(Instruction, frozen=True):
    """Notify the application's listener; `queues` is `None` when the broker made the assignment."""

    topic: str
    queues: tuple[MessageQueue, ...] | None
    mine: tuple[MessageQueue, ...]


class SubscribePopRetry(Instruction, frozen=True):
    """Subscribe to the topic that brings back messages popped before (pop became pull)."""

    topic: str


class UnsubscribePopRetry(Instruction, frozen=True):
    """Leave the topic that brings back popped messages (pull became pop)."""

    topic: str
