"""Topics and the routes to them: made when first asked for, kept until something in them changes.

Knows which brokers hold a topic, its static mapping and the filter servers; asks `BrokerSets` for
addresses. Does not know why anything changes.
"""

from collections.abc import Callable, Iterable

from pocketmq.model.route import QueueData, TopicRoute
from pocketmq.model.topics import TopicMapping
from pocketmq.nameserver.broker_sets import BrokerSets
from pocketmq.nameserver.registrations import BrokerKey
from pocketmq.nameserver.topic_routes import TopicQueues


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
        """Give a topic's route: the same object until it changes."""
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
        """Set what a broker holds of a topic; tell whether that is news."""
        news = self.queues.put(topic, data)
        if news:
            self._touch([topic])
        return news

    def remove(self, topic: str, brokers: Iterable[str]) -> list[str]:
        """Forget that brokers hold a topic; give those that did."""
        gone = self.queues.remove(topic, brokers)
        if gone:
            self._touch([topic])
        return gone

    def remove_broker(self, broker: str) -> None:
        """Forget all that a broker name holds."""
        self._touch(self.queues.remove_broker(broker))

    def change_permissions(self, broker: str, change: Callable[[int], int]) -> int:
        """Change the permissions of all a broker name holds; give the number of topics."""
        topics = self.queues.change_permissions(broker, change)
        self._touch(topics)
        return len(topics)

    def put_mappings(self, broker: str, mappings: dict[str, TopicMapping]) -> None:
        """Set what a broker says of static topics. As in Java it outlives topic and broker."""
        for topic, mapping in mappings.items():
            self._mappings.setdefault(topic, {})[mapping.bname or broker] = mapping
        self._touch(mappings)

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
