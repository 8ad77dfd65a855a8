"""Letting go of a queue this member held (Java: removeUnnecessaryMessageQueue).

Concurrent and broadcasting consumers just hand over their offset. An orderly consumer also holds
the broker's lock, and must not give it away while a handler still works on the queue: then the
queue stays in the table, dropped, and the next round tries again.
"""

import msgspec

from pocketmq.balance.consumer.instructions import (
    AwaitIdle,
    CountUnlockTry,
    ForgetOffset,
    Instruction,
    MarkUnlocked,
    PersistOffset,
    UnlockQueue,
)
from pocketmq.balance.profile import Profile
from pocketmq.model.kinds import ConsumeType, MessageModel
from pocketmq.model.queue import MessageQueue


class ReleaseFacts(msgspec.Struct, frozen=True):
    """A queue to be let go, and what its process queue says."""

    queue: MessageQueue
    model: MessageModel
    orderly: bool
    consume_type: ConsumeType
    dropped: bool
    cached: bool
    """Whether messages are cached that nobody began to consume."""
    last_lock: float
    now: float


class ReleaseStep(msgspec.Struct, frozen=True):
    """What to do, and whether the queue is released then; `None` = after `QueueIdled`."""

    instructions: tuple[Instruction, ...]
    released: bool | None


def begin_release(profile: Profile, facts: ReleaseFacts) -> ReleaseStep:
    """Hand over the offset; ask for quiet first where a lock is to be given back."""
    queue = facts.queue
    persist, forget = PersistOffset(queue), ForgetOffset(queue)
    if not holds_lock(facts):
        return ReleaseStep((persist, forget), True)
    wait = AwaitIdle(queue, profile.release_wait)
    if not profile.release_by_force:
        return ReleaseStep((persist, forget, wait), None)
    if facts.dropped and facts.now > facts.last_lock + profile.unlock_delay:
        forced = finish_release(profile, facts, idle=True)
        return ReleaseStep((persist, *forced.instructions), True)
    return ReleaseStep((persist, wait), None)


def finish_release(profile: Profile, facts: ReleaseFacts, *, idle: bool) -> ReleaseStep:
    """Give the lock back if the queue came to rest in time, or keep the queue for now."""
    queue = facts.queue
    if not idle:
        return ReleaseStep((CountUnlockTry(queue),), False)
    if not profile.release_by_force:
        # 4.x: what is cached may still be under a handler elsewhere, so the lock stays a while.
        delay = profile.unlock_delay if facts.cached else 0.0
        return ReleaseStep((UnlockQueue(queue, after=delay),), True)
    steps = (PersistOffset(queue), ForgetOffset(queue), MarkUnlocked(queue), UnlockQueue(queue))
    return ReleaseStep(steps, True)


def holds_lock(facts: ReleaseFacts) -> bool:
    """Tell whether a queue of this consumer is locked at its broker and must be unlocked."""
    return (
        facts.orderly
        and facts.model is MessageModel.CLUSTERING
        and facts.consume_type is ConsumeType.CONSUME_PASSIVELY
    )
