"""How far a member is behind, by what it has learned from its own pulls: no request is made."""

from collections.abc import Iterable

import msgspec

from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.model import MessageQueue
from pocketmq.model.names import is_retry_topic, unwrap_namespace


class QueueLag(msgspec.Struct, frozen=True):
    """The messages of a queue that are not handled yet."""

    cached: int
    """Those that were pulled."""
    behind: int
    """Those that were in the queue behind them when it was pulled last; 0 if it is popped."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.cached + self.behind


def lag_of(queues: Iterable[HeldQueue], namespace: str) -> dict[MessageQueue, QueueLag]:
    """Return the lag of each queue, by its name for the application; without retry topics."""
    found = {}
    for held in queues:
        queue = held.queue
        if held.mine and not is_retry_topic(queue.topic):
            shown = MessageQueue(
                unwrap_namespace(namespace, queue.topic), queue.broker_name, queue.queue_id
            )
            found[shown] = QueueLag(held.process.count, max(0, held.waiting))
    return found
