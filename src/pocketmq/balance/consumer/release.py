"""Releasing a queue that a rebalance revoked: its offset is handed over, then its lock.

Concurrent and broadcasting consumers just hand over their offset. An orderly consumer also has the
broker's lock, and must not give it away while a handler still works on the queue: then the queue
stays in the table, dropped, and the next round tries again. Java: removeUnnecessaryMessageQueue.
"""

import msgspec

from pocketmq.balance.consumer import instructions as do
from pocketmq.balance.profile import Profile
from pocketmq.model import ConsumeType, MessageModel, MessageQueue


class ReleaseFacts(msgspec.Struct, frozen=True):
    """A queue to release, and the state of its process queue."""

    queue: MessageQueue
    model: MessageModel
    orderly: bool
    consume_type: ConsumeType
    dropped: bool
    cached: bool
    """Whether messages are cached that no handler has started."""
    last_lock: float
    now: float


class ReleaseStep(msgspec.Struct, frozen=True):
    """What to do, and whether the queue is released then; `None` = after `QueueIdled`."""

    instructions: tuple[do.Instruction, ...]
    released: bool | None


def begin_release(profile: Profile, facts: ReleaseFacts) -> ReleaseStep:
    """Hand over the offset; where a lock is to be released, wait for idle handlers first."""
    queue = facts.queue
    persist, forget = do.PersistOffset(queue), do.ForgetOffset(queue)
    if not holds_lock(facts):
        return ReleaseStep((persist, forget), True)
    wait = do.AwaitIdle(queue, profile.release_wait)
    if not profile.release_by_force:
        return ReleaseStep((persist, forget, wait), None)
    if facts.dropped and facts.now > facts.last_lock + profile.unlock_delay:
        forced = finish_release(profile, facts, idle=True)
        return ReleaseStep((persist, *forced.instructions), True)
    return ReleaseStep((persist, wait), None)


def finish_release(profile: Profile, facts: ReleaseFacts, *, idle: bool) -> ReleaseStep:
    """Release the lock if the queue became idle in time, or keep the queue for now."""
    queue = facts.queue
    if not idle:
        return ReleaseStep((do.CountUnlockTry(queue),), False)
    if not profile.release_by_force:
        # 4.x: a handler may still work on what is cached, so the lock stays for a while.
        delay = profile.unlock_delay if facts.cached else 0.0
        return ReleaseStep((do.UnlockQueue(queue, after=delay),), True)
    # The offset goes first: the next owner reads it as soon as it has the lock, and whatever it
    # does not find there it consumes a second time.
    steps = (
        do.PersistOffset(queue),
        do.ForgetOffset(queue),
        do.MarkUnlocked(queue),
        do.UnlockQueue(queue),
    )
    return ReleaseStep(steps, True)


def holds_lock(facts: ReleaseFacts) -> bool:
    """Return whether a queue of this consumer is locked at its broker and must be unlocked."""
    return (
        facts.orderly
        and facts.model is MessageModel.CLUSTERING
        and facts.consume_type is ConsumeType.CONSUME_PASSIVELY
    )
