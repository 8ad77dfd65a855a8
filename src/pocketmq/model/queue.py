"""A message queue's identity: the unit of load balancing."""

import msgspec

from pocketmq.model.java_strings import int32, java_hash, java_order


class MessageQueue(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One queue of a topic on one broker.

    Compares by value and hashes cheaply, so it serves as a key. Sort with `java_sort_key` (or
    `sort_queues`) where Java peers must come to the same order.
    """

    topic: str
    broker_name: str
    queue_id: int

    def java_text(self) -> str:
        """Return Java's `toString()`, which is also the queue's key on the consistent-hash ring."""
        return (
            f"MessageQueue [topic={self.topic}, brokerName={self.broker_name}, "
            f"queueId={self.queue_id}]"
        )

    def java_sort_key(self) -> tuple[bytes, bytes, int]:
        """Return a key that sorts as Java's `MessageQueue.compareTo` does."""
        return java_order(self.topic), java_order(self.broker_name), self.queue_id

    def java_hash(self) -> int:
        """Return Java's `MessageQueue.hashCode()`."""
        result = 31 + java_hash(self.broker_name)
        result = 31 * result + self.queue_id
        return int32(31 * result + java_hash(self.topic))


class QueueName(msgspec.Struct, frozen=True, order=True):
    """A queue by topic, broker and number; sorts as people expect."""

    topic: str
    broker: str
    queue: int

    def __str__(self) -> str:
        return f"{self.broker}:{self.queue}"


def sort_queues(
    queues: list[MessageQueue] | set[MessageQueue] | tuple[MessageQueue, ...],
) -> list[MessageQueue]:
    """Sort queues as every member of a group must: by topic, broker name and queue id."""
    if all(queue.topic.isascii() and queue.broker_name.isascii() for queue in queues):
        return sorted(queues, key=_plain_key)
    return sorted(queues, key=MessageQueue.java_sort_key)


def _plain_key(queue: MessageQueue) -> tuple[str, str, int]:
    return queue.topic, queue.broker_name, queue.queue_id
