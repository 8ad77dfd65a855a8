"""What an application asks of a pull consumer, before its start and later; and names both ways.

Asks nobody. Belongs to one event loop, or to nobody before the start.
"""

from collections.abc import Iterable

from pocketmq.client.group.listeners import QueueListeners
from pocketmq.client.group.pauses import Pauses
from pocketmq.client.group.subscriptions import Subscribed, Subscriptions
from pocketmq.client.pull.watching import QueueWatch
from pocketmq.errors import InvalidInput
from pocketmq.model.queue import MessageQueue


class Wishes:
    """What one application wants."""

    def __init__(self, namespace: str) -> None:
        self.subscriptions = Subscriptions(namespace)
        """What is shared out with the group."""
        self.assigned: tuple[MessageQueue, ...] | None = None
        """Queues assigned by hand, with the names of the wire; None if they are shared out."""
        self.by_hand: dict[str, Subscribed] = {}
        """What is wanted of the topics of queues assigned by hand, by the wire's names."""
        self.pauses = Pauses()
        self.watch = QueueWatch(namespace)
        self.listeners = QueueListeners()

    def wire(self, queue: MessageQueue) -> MessageQueue:
        """Give a queue by its name on the wire; raises `InvalidInput` for what is none."""
        given: object = queue
        if not isinstance(given, MessageQueue):
            raise InvalidInput(f"a queue is a MessageQueue, such as queues() gives, not {given!r}")
        return MessageQueue(self.subscriptions.wire(queue.topic), queue.broker_name, queue.queue_id)

    def wire_any(
        self, what: str | Iterable[MessageQueue] | None
    ) -> str | list[MessageQueue] | None:
        """Give a topic or queues with the names of the wire."""
        if what is None:
            return None
        if isinstance(what, str):
            return self.subscriptions.wire(what)
        return [self.wire(queue) for queue in what]

    def shown(self, queue: MessageQueue) -> MessageQueue:
        """Give a queue under the name the application knows its topic by."""
        return MessageQueue(
            self.subscriptions.shown(queue.topic), queue.broker_name, queue.queue_id
        )
