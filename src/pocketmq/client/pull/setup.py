"""What an application has set up on a pull consumer, and the names of queues both ways.

Talks to no server. Belongs to one event loop once the consumer is started.
"""

from collections.abc import Iterable

from pocketmq.client.group.holdings import Pauses
from pocketmq.client.group.listeners import QueueListeners, QueueWatch
from pocketmq.client.group.subscriptions import Subscriptions, TopicSubscription
from pocketmq.errors import InvalidInput
from pocketmq.model.queue import MessageQueue


class PullSetup:
    """Subscriptions, assigned queues, pauses and listeners of one pull consumer."""

    def __init__(self, namespace: str) -> None:
        self.subscriptions = Subscriptions(namespace)
        """Topics whose queues are shared out with the group."""
        self.assigned: tuple[MessageQueue, ...] | None = None
        """Queues assigned by hand, with the names of the wire; None if they are shared out."""
        self.by_hand: dict[str, TopicSubscription] = {}
        """The subscriptions of topics whose queues are assigned by hand, by the wire's names."""
        self.pauses = Pauses()
        self.watch = QueueWatch(namespace)
        self.listeners = QueueListeners()

    def wire(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue with its name on the wire; raises `InvalidInput` for what is no queue."""
        given: object = queue
        if not isinstance(given, MessageQueue):
            raise InvalidInput(
                f"a queue is a MessageQueue, as queues() returns them, not {given!r}"
            )
        return MessageQueue(self.subscriptions.wire(queue.topic), queue.broker_name, queue.queue_id)

    def wire_any(
        self, what: str | Iterable[MessageQueue] | None
    ) -> str | list[MessageQueue] | None:
        """Return a topic or queues with the names of the wire."""
        if what is None:
            return None
        if isinstance(what, str):
            return self.subscriptions.wire(what)
        return [self.wire(queue) for queue in what]

    def shown(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue under the name by which the application calls its topic."""
        return MessageQueue(
            self.subscriptions.shown(queue.topic), queue.broker_name, queue.queue_id
        )
