"""An orderly consumer's locks: renewed while a queue is owned, released with it.

One renewal request goes to each broker every 20 s. A lock is good for 30 s on this side and 60 s at
the broker, so one lost renewal does no harm. Broadcasting consumers do not renew. The times are in
`balance.profile`; `client.push.member` has the timer, `client.push.locks` the requests.

Releasing a queue (Java: removeUnnecessaryMessageQueue): concurrent and broadcasting consumers just
hand over their offset. An orderly consumer also has the broker's lock, and must not give it away
while a handler still works on the queue: then the queue stays in the table, dropped, and the next
round tries again.
"""

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

import msgspec

from pocketmq.balance.consumer import instructions as do
from pocketmq.balance.consumer.facts import OwnedQueue
from pocketmq.balance.profile import Profile
from pocketmq.model import ConsumeType, MessageModel, MessageQueue, MessageRequestMode

Holder: TypeAlias = Callable[[MessageQueue], str]
"""Returns the name of the broker that serves a queue: not its own for logical queues."""


def _own(queue: MessageQueue) -> str:
    return queue.broker_name


def lock_plan(owned: Iterable[OwnedQueue], holder: Holder = _own) -> tuple[do.LockBatch, ...]:
    """Group the owned queues that are not dropped by their broker."""
    return tuple(do.LockBatch(name, queues) for name, queues in _by_broker(owned, holder).items())


def unlock_plan(owned: Iterable[OwnedQueue], holder: Holder = _own) -> tuple[do.UnlockBatch, ...]:
    """Group the queues to unlock when the consumer stops."""
    return tuple(do.UnlockBatch(name, queues) for name, queues in _by_broker(owned, holder).items())


def after_lock_batch(
    batch: do.LockBatch, granted: Collection[MessageQueue] | None
) -> tuple[do.Instruction, ...]:
    """Return what a broker's answer means; `None` = it did not answer, and locks just grow older.

    A queue that is not granted belongs to another member: its handlers pause until it is locked
    again or revoked by a rebalance.
    """
    if granted is None:
        return ()
    return tuple(
        do.MarkLocked(queue) if queue in granted else do.MarkUnlocked(queue)
        for queue in batch.queues
    )


def after_unlock_batch(batch: do.UnlockBatch, *, answered: bool) -> tuple[do.Instruction, ...]:
    """Return what to note once the locks are released."""
    return tuple(do.MarkUnlocked(queue) for queue in batch.queues) if answered else ()


def _by_broker(owned: Iterable[OwnedQueue], holder: Holder) -> dict[str, tuple[MessageQueue, ...]]:
    brokers: dict[str, list[MessageQueue]] = {}
    for item in owned:
        if not item.dropped and item.mode is MessageRequestMode.PULL:
            brokers.setdefault(holder(item.queue), []).append(item.queue)
    return {name: tuple(queues) for name, queues in brokers.items()}


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
