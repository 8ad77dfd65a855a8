"""Renewing an orderly consumer's locks: one request for each broker, every 20 s.

A lock is good for 30 s on this side and 60 s at the broker, so one lost renewal does no harm.
Broadcasting consumers do not renew.
"""

from collections.abc import Collection, Iterable

from pocketmq.balance.consumer.instructions import (
    Instruction,
    LockBatch,
    MarkLocked,
    MarkUnlocked,
    UnlockBatch,
)
from pocketmq.balance.consumer.rebalance import OwnedQueue
from pocketmq.model.kinds import MessageRequestMode
from pocketmq.model.queue import MessageQueue


def lock_plan(owned: Iterable[OwnedQueue]) -> tuple[LockBatch, ...]:
    """Group the queues that are held and not dropped by their broker."""
    return tuple(LockBatch(name, queues) for name, queues in _by_broker(owned).items())


def unlock_plan(owned: Iterable[OwnedQueue]) -> tuple[UnlockBatch, ...]:
    """Group the queues to unlock when the consumer stops."""
    return tuple(UnlockBatch(name, queues) for name, queues in _by_broker(owned).items())


def after_lock_batch(
    batch: LockBatch, granted: Collection[MessageQueue] | None
) -> tuple[Instruction, ...]:
    """Tell what a broker's answer means; `None` = it did not answer, and locks just grow older.

    A queue that is not granted belongs to another member: its handlers pause until it is locked
    again or taken away by a rebalance.
    """
    if granted is None:
        return ()
    return tuple(
        MarkLocked(queue) if queue in granted else MarkUnlocked(queue) for queue in batch.queues
    )


def after_unlock_batch(batch: UnlockBatch, *, answered: bool) -> tuple[Instruction, ...]:
    """Tell what to note once the locks are given back."""
    return tuple(MarkUnlocked(queue) for queue in batch.queues) if answered else ()


def _by_broker(owned: Iterable[OwnedQueue]) -> dict[str, tuple[MessageQueue, ...]]:
    brokers: dict[str, list[MessageQueue]] = {}
    for item in owned:
        if not item.dropped and item.mode is MessageRequestMode.PULL:
            brokers.setdefault(item.queue.broker_name, []).append(item.queue)
    return {name: tuple(queues) for name, queues in brokers.items()}
