"""Locking queues for consumers that keep the order."""

import msgspec

from pocketmq.model.queue import MessageQueue
from pocketmq.model.value import WireValue


class LockQueues(WireValue, frozen=True, kw_only=True):
    """Queues a member wants for itself (Java: LockBatchRequestBody)."""

    consumer_group: str
    client_id: str
    only_this_broker: bool = False
    mq_set: list[MessageQueue] = []


class UnlockQueues(WireValue, frozen=True, kw_only=True):
    """Queues a member gives back (Java: UnlockBatchRequestBody)."""

    consumer_group: str
    client_id: str
    only_this_broker: bool = False
    mq_set: list[MessageQueue] = []


class LockedQueues(WireValue, frozen=True, kw_only=True):
    """Queues that are the member's now (Java: LockBatchResponseBody)."""

    locked: list[MessageQueue] = msgspec.field(name="lockOKMQSet", default_factory=list)
