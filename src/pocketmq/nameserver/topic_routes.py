"""Topics and the routes to them: built when first requested, cached until something changes.

`TopicQueues` says which brokers hold queues of which topic; `Routes` adds static mappings and
filter servers, and takes addresses from `BrokerSets`. Neither knows why anything changes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from pocketmq.model import QueueData, TopicMapping, TopicRoute
from pocketmq.nameserver.broker_sets import BrokerSets
from pocketmq.nameserver.registrations import BrokerKey

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
        """Return a topic's queue data by broker name, in the order of registration."""
        return self._by_topic.get(topic, _NONE)

    def of_broker(self, broker: str) -> Collection[str]:
        """Return the topics a broker name holds queues of; a view, not to be kept."""
        return self._by_broker.get(broker, {}).keys()

    def held_by(self, broker: str) -> list[tuple[str, QueueData]]:
        """Return the topics a broker name holds queues of, with its queue data."""
        return [(topic, self._by_topic[topic][broker]) for topic in self.of_broker(broker)]

    def holds(self, topic: str, broker: str) -> bool:
        """Return whether a broker name holds queues of a topic."""
        return broker in self._by_topic.get(topic, _NONE)

    def put(self, topic: str, data: QueueData) -> bool:
        """Set what one broker holds; return whether it changed."""
        brokers = self._by_topic.setdefault(topic, {})
        if brokers.get(data.broker_name) == data:
            return False
        brokers[data.broker_name] = data
        self._by_broker.setdefault(data.broker_name, {})[topic] = None
        return True

    def remove(self, topic: str, brokers: Iterable[str]) -> list[str]:
        """Forget that these brokers hold a topic; return those that did."""
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
        """Forget all that a broker name holds; return the topics."""
        topics = list(self.of_broker(broker))
        for topic in topics:
            self.remove(topic, [broker])
        return topics

    def change_permissions(self, broker: str, change: Callable[[int], int]) -> list[str]:
        """Change the permissions of all that a broker name holds; return the topics."""
        topics = list(self.of_broker(broker))
        for topic in topics:
            data = self._by_topic[topic][broker]
            self._by_topic[topic][broker] = msgspec.structs.replace(data, perm=change(data.perm))
        return topics


class Routes:
    """Every topic's route. `version` grows with every change that an answer could show."""

    def __init__(self, brokers: BrokerSets) -> None:
        self.queues = TopicQueues()
        self.version = 0
        self._brokers = brokers
        self._filter_servers: dict[BrokerKey, tuple[str, ...]] = {}
        self._mappings: dict[str, dict[str, TopicMapping]] = {}
        self._made: dict[str, TopicRoute] = {}

    def get(self, topic: str) -> TopicRoute | None:
        """Return a topic's route: the same object until it changes."""
        route = self._made.get(topic)
        if route is None and topic in self.queues:
            route = self._made[topic] = self._make(topic)
        return route

    def _make(self, topic: str) -> TopicRoute:
        datas = self.queues.of_topic(topic)
        found = (self._brokers.get(name) for name in datas)
        brokers = [each for each in found if each is not None]
        filter_servers = {}
        for broker in brokers if self._filter_servers else ():
            for address in broker.addresses.values():
                servers = self._filter_servers.get(BrokerKey(broker.cluster, address))
                if servers:
                    filter_servers[address] = list(servers)
        mappings = self._mappings.get(topic)
        return TopicRoute(
            queue_datas=list(datas.values()),
            broker_datas=[broker.data() for broker in brokers],
            filter_server_table=filter_servers,
            topic_queue_mapping_by_broker=None if mappings is None else dict(mappings),
        )

    def put(self, topic: str, data: QueueData) -> bool:
        """Set what a broker holds of a topic; return whether it changed."""
        changed = self.queues.put(topic, data)
        if changed:
            self._touch([topic])
        return changed

    def remove(self, topic: str, brokers: Iterable[str]) -> list[str]:
        """Forget that brokers hold a topic; return those that did."""
        gone = self.queues.remove(topic, brokers)
        if gone:
            self._touch([topic])
        return gone

    def remove_broker(self, broker: str) -> None:
        """Forget all that a broker name holds."""
        self._touch(self.queues.remove_broker(broker))

    def change_permissions(self, broker: str, change: Callable[[int], int]) -> int:
        """Change the permissions of all a broker name holds; return the number of topics."""
        topics = self.queues.change_permissions(broker, change)
        self._touch(topics)
        return len(topics)

    def put_mappings(self, broker: str, mappings: dict[str, TopicMapping]) -> None:
        """Set a broker's mappings of static topics. They outlive the broker, as in Java."""
        for topic, mapping in mappings.items():
            self._mappings.setdefault(topic, {})[mapping.bname or broker] = mapping
        self._touch(mappings)

    def forget_mappings(self, topic: str) -> None:
        """Forget the mappings of a topic that is deleted: a new one of that name may not be static.

        Java keeps them.
        """
        if self._mappings.pop(topic, None) is not None:
            self._touch([topic])

    def unmapped(self, topics: Iterable[str]) -> int:
        """Count the topics that have no mapping, plus all that have one."""
        return len(self._mappings) + sum(topic not in self._mappings for topic in topics)

    def set_filter_servers(self, key: BrokerKey, broker: str, servers: tuple[str, ...]) -> None:
        """Set the filter servers beside a broker."""
        if servers == self._filter_servers.get(key, ()):
            return
        self._filter_servers.pop(key, None)
        if servers:
            self._filter_servers[key] = servers
        self.touch_broker(broker)

    def touch_broker(self, broker: str) -> None:
        """Note that a broker's addresses have changed, or how it is described."""
        self._touch(list(self.queues.of_broker(broker)))

    def _touch(self, topics: Iterable[str]) -> None:
        self.version += 1
        for topic in topics:
            self._made.pop(topic, None)
