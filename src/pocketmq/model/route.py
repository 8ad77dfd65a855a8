"""Where a topic lives, and which of its queues producers and consumers may use.

A route comes from a name server, a peer that is not trusted: it may declare any number of queues,
so counts are checked before lists are built. Nothing here asks for routes or keeps them.
"""

import re

import msgspec

from pocketmq.errors import BodyMalformed
from pocketmq.model.java_strings import java_order, java_split
from pocketmq.model.kinds import Permission
from pocketmq.model.queue import MessageQueue
from pocketmq.model.topics import TopicMapping, leaders
from pocketmq.model.value import WireValue

MASTER_ID = 0
DEFAULT_TOPIC_QUEUE_NUMS = 4
MAX_ROUTE_QUEUES = 65_536
"""More queues of one topic than any cluster has; a route that declares more is refused."""

_JAVA_INT = re.compile(r"[+-]?\d+\Z")
_INT_LIMITS = range(-0x8000_0000, 0x8000_0000)


class BrokerData(WireValue, frozen=True, kw_only=True):
    """One broker name with the addresses of its master (id 0) and slaves."""

    cluster: str = ""
    broker_name: str
    broker_addrs: dict[int, str] = {}
    zone_name: str | None = None
    enable_acting_master: bool | None = None

    def master(self) -> str | None:
        """Return the master's address, if one is registered."""
        return self.broker_addrs.get(MASTER_ID)


class QueueData(WireValue, frozen=True, kw_only=True):
    """How many queues of a topic one broker has, and what they may be used for."""

    broker_name: str
    read_queue_nums: int = 0
    write_queue_nums: int = 0
    perm: int = 0
    topic_sys_flag: int = 0


class TopicRoute(WireValue, frozen=True, kw_only=True):
    """A name server's answer for one topic (Java: TopicRouteData)."""

    order_topic_conf: str | None = None
    queue_datas: list[QueueData] = []
    broker_datas: list[BrokerData] = []
    filter_server_table: dict[str, list[str]] = {}
    topic_queue_mapping_by_broker: dict[str, TopicMapping] | None = None

    def publish_queues(self, topic: str) -> list[MessageQueue]:
        """List the queues producers choose from, in Java's order.

        An order configuration wins and gives its own order; a static topic has its logical queues.
        Otherwise brokers go by name, and only writable queues of brokers with a registered master
        count. Order and repetitions are Java's,
        because a hash of the ordering key is an index into this list.

        Raises `BodyMalformed` when the route declares too many queues, or when its order
        configuration does not parse.
        """
        if self.order_topic_conf:
            return _expand(topic, _read_order(self.order_topic_conf))
        if self.order_topic_conf is None and self.topic_queue_mapping_by_broker:
            return sorted(self.leaders(topic), key=lambda queue: queue.queue_id)
        return _expand(topic, self._writable())

    def subscribe_queues(self, topic: str) -> set[MessageQueue]:
        """List the queues consumers share: all readable or all logical ones, masters or not.

        Raises `BodyMalformed` when the route declares too many queues.
        """
        if self.topic_queue_mapping_by_broker:
            return set(self.leaders(topic))
        readable = [
            (data.broker_name, data.read_queue_nums)
            for data in self.queue_datas
            if data.perm & Permission.READ
        ]
        return set(_expand(topic, readable))

    def leaders(self, topic: str) -> dict[MessageQueue, str]:
        """Return the brokers that lead the logical queues of a static topic; empty for others.

        Raises `BodyMalformed` when the route declares too many queues.
        """
        return leaders(topic, self.topic_queue_mapping_by_broker or {})

    def for_new_topic(self, queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS) -> "TopicRoute":
        """Return the route for a topic that brokers will create when its first message comes.

        This route is that of the template topic (`TBW102`); a new topic gets at most `queue_nums`
        queues on each broker, and no more than the template may be read from.
        """
        datas = []
        for data in self.queue_datas:
            count = min(queue_nums, data.read_queue_nums)
            changes = {"read_queue_nums": count, "write_queue_nums": count}
            datas.append(msgspec.structs.replace(data, **changes))
        return msgspec.structs.replace(self, queue_datas=datas)

    def differs_from(self, old: "TopicRoute | None") -> bool:
        """Return whether a cached route must give way to this one.

        As in Java the order of brokers and queues does not matter, nor do cluster and zone names.
        """
        return old is None or _essence(self) != _essence(old)

    def _writable(self) -> list[tuple[str, int]]:
        first_data: dict[str, BrokerData] = {}
        for broker in self.broker_datas:
            first_data.setdefault(broker.broker_name, broker)  # Java stops at the first of a name
        return [
            (data.broker_name, data.write_queue_nums)
            for data in sorted(self.queue_datas, key=_by_broker)
            if data.perm & Permission.WRITE
            and data.broker_name in first_data
            and MASTER_ID in first_data[data.broker_name].broker_addrs
        ]


def _by_broker(data: QueueData) -> bytes:
    return java_order(data.broker_name)


def _essence(route: TopicRoute) -> tuple[object, ...]:
    return (
        route.order_topic_conf,
        [
            (d.broker_name, d.perm, d.read_queue_nums, d.write_queue_nums, d.topic_sys_flag)
            for d in sorted(route.queue_datas, key=_by_broker)
        ],
        sorted((b.broker_name, sorted(b.broker_addrs.items())) for b in route.broker_datas),
        route.filter_server_table,
        route.topic_queue_mapping_by_broker,
    )


def _expand(topic: str, counts: list[tuple[str, int]]) -> list[MessageQueue]:
    """Return the queues 0, 1, … of each broker, after checking their total."""
    total = sum(count for _, count in counts if count > 0)
    if total > MAX_ROUTE_QUEUES:
        raise BodyMalformed(
            "topic route",
            f"{total} queues of topic {topic!r} exceed the limit of {MAX_ROUTE_QUEUES}",
        )
    return [
        MessageQueue(topic, broker, queue_id)
        for broker, count in counts
        for queue_id in range(count)
    ]


def _read_order(configuration: str) -> list[tuple[str, int]]:
    """Read `broker-a:4;broker-b:2` as Java does, which ignores what follows a second colon."""
    counts = []
    for part in java_split(configuration, ";"):
        name, *rest = java_split(part, ":") or [""]
        number = rest[0] if rest else ""
        count = int(number) if _JAVA_INT.match(number) and len(number) < 20 else None
        if count is None or count not in _INT_LIMITS:
            raise BodyMalformed(
                "topic route", f"order configuration {part[:80]!r} is not of the form broker:number"
            )
        counts.append((name, count))
    return counts
