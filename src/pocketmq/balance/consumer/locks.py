"""An orderly consumer's locks: renewed while a queue is owned, released with it (`release`).

One renewal request goes to each broker every 20 s. A lock is good for 30 s on this side and 60 s at
the broker, so one lost renewal does no harm. Broadcasting consumers do not renew. The times are in
`balance.profile`; `client.push.member` has the timer, `client.push.locks` the requests.
"""

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from pocketmq.balance.consumer import instructions as do
from pocketmq.balance.consumer.facts import OwnedQueue
from pocketmq.model import MessageQueue, MessageRequestMode

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
