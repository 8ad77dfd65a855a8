"""The topics of a broker: made by operators, by sends, for groups, and by the broker for itself.

Pure rules over a table in memory. The callers check names (`core.names`), save what changed and
announce it to the name servers (`saving`). Also lists the topics and groups that every broker has
from the start.
"""

from collections.abc import Iterable

import msgspec

from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core.config_table import ConfigTable
from pocketmq.broker.topics.attributes import TOPIC_ATTRIBUTES, apply_changes
from pocketmq.model import GroupConfig, Permission, TopicConfig
from pocketmq.model import names as topic_names

MAX_TOPICS = 50_000
"""More than a broker's clients could work with; a loop of random names must end somewhere."""
MAX_QUEUES = 65_536
"""Queues of one topic; tools list every one of them."""

READ_WRITE = int(Permission.READ | Permission.WRITE)


class TopicConfigTable(ConfigTable[TopicConfig]):
    """Topics by name."""

    kind = "topic"

    def __init__(
        self, system: Iterable[TopicConfig] = (), *, now_ms: int = 0, limit: int = MAX_TOPICS
    ) -> None:
        """Begin with the broker's own topics, which are never saved: see `system_topics`."""
        super().__init__(TopicConfig, limit, now_ms)
        self.entries = {config.topic_name: config for config in system}
        self._system = frozenset(self.entries)
        self._unannounced: set[str] = set()

    def is_system(self, topic: str) -> bool:
        """Return whether a topic is RocketMQ's own, or this broker's."""
        return topic in self._system or topic_names.is_system_topic(topic)

    @property
    def system_names(self) -> frozenset[str]:
        """The topics this broker made for itself."""
        return self._system

    def is_order(self, topic: str) -> bool:
        """Return whether a topic keeps the order of its messages."""
        config = self.entries.get(topic)
        return config is not None and config.order

    def create_on_send(
        self,
        topic: str,
        template: str,
        queues: int,
        sys_flag: int,
        *,
        auto_create: bool,
        now_ms: int,
    ) -> TopicConfig | None:
        """Make a topic for its first message, after a template that may be inherited.

        It gets as many queues as the client wants, but no more than the template has. None if the
        template is missing, not to be inherited, or `auto_create` is off and it is TBW102.
        """
        known = self.entries.get(topic)
        if known is not None:
            return known
        pattern = self.entries.get(template)
        if pattern is None or not pattern.perm & Permission.INHERIT or self.full:
            return None
        if template == topic_names.AUTO_CREATE_TOPIC and not auto_create:
            return None
        count = max(0, min(queues, pattern.write_queue_nums))
        config = TopicConfig(
            topic_name=topic,
            read_queue_nums=count,
            write_queue_nums=count,
            perm=pattern.perm & ~Permission.INHERIT,
            topic_filter_type=pattern.topic_filter_type,
            topic_sys_flag=sys_flag,
        )
        self.put(topic, config, now_ms)
        return config

    def create_for_group(
        self,
        topic: str,
        queues: int,
        *,
        perm: int = READ_WRITE,
        order: bool | None = None,
        sys_flag: int = 0,
        now_ms: int,
    ) -> TopicConfig | None:
        """Return a retry or dead-letter topic, made if it is missing.

        `order`, if given, also changes a topic that exists: members of the group may come to
        consume an order topic later. None if there is no room for a further topic.
        """
        known = self.entries.get(topic)
        if known is not None:
            if order is None or order == known.order:
                return known
            known = msgspec.structs.replace(known, order=order)
            self.put(topic, known, now_ms)
            return known
        if self.full:
            return None
        count = max(0, min(queues, MAX_QUEUES))
        config = TopicConfig(
            topic_name=topic,
            read_queue_nums=count,
            write_queue_nums=count,
            perm=perm,
            order=bool(order),
            topic_sys_flag=sys_flag,
        )
        self.put(topic, config, now_ms)
        return config

    def update(self, wanted: TopicConfig, now_ms: int) -> bool:
        """Make or replace a topic; return whether anything changed.

        The attributes of `wanted` are changes, with signed keys. Raises `AttributeRefused`.
        """
        known = self.entries.get(wanted.topic_name)
        if wanted == known:
            return False
        current = None if known is None else known.attributes
        attributes = apply_changes(TOPIC_ATTRIBUTES, current, wanted.attributes)
        config = msgspec.structs.replace(wanted, attributes=attributes)
        self.put(wanted.topic_name, config, now_ms)
        return True

    def set_order(self, topics: Iterable[str], now_ms: int) -> None:
        """Mark topics as keeping the order, as the name servers say at registration."""
        for topic in topics:
            config = self.entries.get(topic)
            if config is not None and not config.order:
                self.put(topic, msgspec.structs.replace(config, order=True), now_ms)

    def put(self, name: str, value: TopicConfig, now_ms: int) -> None:
        """Add or replace a topic, to be saved and announced."""
        super().put(name, value, now_ms)
        self._unannounced.add(name)

    def take_unannounced(self) -> list[str]:
        """Return the topics to announce to the name servers, and clear the list."""
        names, self._unannounced = self._unannounced, set()
        return [name for name in names if name in self.entries]


_SCHEDULE_QUEUES = 18
_BENCHMARK_QUEUES = 1024
_CLUSTER_QUEUES = 16
_REVIVE_QUEUES = 8
_READ_WRITE = int(Permission.READ | Permission.WRITE)
_INHERIT = int(Permission.INHERIT)

SYSTEM_GROUP_NAMES = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
)


def system_topics(config: BrokerConfig) -> list[TopicConfig]:
    """Return the broker's own topics.

    Topics named after the cluster and the broker are templates: tools make new topics by the route
    of one of them. Without a name for either, a client could not create topics at all.
    """
    cluster, broker = config.broker_cluster_name, config.broker_name
    topics = [
        _topic(topic_names.SELF_TEST_TOPIC),
        _topic(topic_names.BENCHMARK_TOPIC, _BENCHMARK_QUEUES),
        _topic(cluster, _CLUSTER_QUEUES, _template(enabled=config.cluster_topic_enable)),
        _topic(broker, 1, _template(enabled=config.broker_topic_enable)),
        _topic(topic_names.OFFSET_MOVED_TOPIC),
        _topic(topic_names.SCHEDULE_TOPIC, _SCHEDULE_QUEUES),
        _topic(f"{cluster}_REPLY_TOPIC"),
        _topic(f"{topic_names.SYSTEM_TOPIC_PREFIX}REVIVE_LOG_{cluster}", _REVIVE_QUEUES),
        _topic(f"{topic_names.SYSTEM_TOPIC_PREFIX}SYNC_BROKER_MEMBER_{broker}", 1, _INHERIT),
        _topic(topic_names.HALF_TOPIC),
        _topic(topic_names.OP_HALF_TOPIC),
        _topic(topic_names.TIMER_TOPIC),
    ]
    if config.auto_create_topic_enable:
        queues = config.default_topic_queue_nums
        topics.append(_topic(topic_names.AUTO_CREATE_TOPIC, queues, _template(enabled=True)))
    if config.trace_topic_enable:
        topics.append(_topic(config.msg_trace_topic_name))
    return topics


def system_groups() -> list[GroupConfig]:
    """Return the groups every broker has."""
    return [GroupConfig(group_name=name) for name in SYSTEM_GROUP_NAMES]


def _template(*, enabled: bool) -> int:
    return _INHERIT | (_READ_WRITE if enabled else 0)


def _topic(name: str, queues: int = 1, perm: int = _READ_WRITE) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm)
