"""Which brokers hold queues of which topic, findable from either side.

Knows nothing of addresses, clusters or liveness.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from pocketmq.model.route import QueueData

_NONE: Mapping[str, QueueData] = {}


class TopicQueues:
    """Queue data by topic and broker name. A topic exists while some broker holds queues of it."""

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[str, QueueData]] = {}
        self._by_broker: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._by_topic)

    def __contains__(self, topic: object) -> bool:
        return topic in self._by_topic

    def topics(self) -> Collection[str]:
        """Every topic; a view, not to be kept."""
        return self._by_topic.keys()

    def of_topic(self, topic: str) -> Mapping[str, QueueData]:
        """Give a topic's queue data by broker name, the longest known first."""
        return self._by_topic.get(topic, _NONE)

    def of_broker(self, broker: str) -> Collection[str]:
        """Give the topics a broker name holds queues of; a view, not to be kept."""
        return self._by_broker.get(broker, {}).keys()

    def holds(self, topic: str, broker: str) -> bool:
        """Tell whether a broker name holds queues of a topic."""
        return broker in self._by_topic.get(topic, _NONE)

    def put(self, topic: str, data: QueueData) -> bool:
        """Set what one broker holds; tell whether that is news."""
        brokers = self._by_topic.setdefault(topic, {})
        if brokers.get(data.broker_name) == data:
            return False
        brokers[data.broker_name] = data
        self._by_broker.setdefault(data.broker_name, {})[topic] = None
        return True

    def remove(self, topic: str, brokers: Iterable[str]) -> list[str]:
        """Forget that these brokers hold a topic; give those that did."""
        holders = self._by_topic.get(topic, {})
        gone = [broker for broker in brokers if holders.pop(broker, None) is not None]
        for broker in gone:
            topics = self._by_broker[broker]
            del topics[topic]
            if not topics:
                del self._by_broker[broker]
        if gone and not holders:
            del self._by_topic[topic]
        return gone

    def remove_broker(self, broker: str) -> list[str]:
        """Forget all that a broker name holds; give the topics."""
        topics = list(self.of_broker(broker))
        for topic in topics:
            self.remove(topic, [broker])
        return topics

    def change_permissions(self, broker: str, change: Callable[[int], int]) -> list[str]:
        """Change the permissions of all that a broker name holds; give the topics."""
        topics = list(self.of_broker(broker))
        for topic in topics:
            data = self._by_topic[topic][broker]
            self._by_topic[topic][broker] = msgspec.structs.replace(data, perm=change(data.perm))
        return topics
