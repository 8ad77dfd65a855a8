"""The topics and groups that every broker has from the start."""

from pocketmq.broker.config import BrokerConfig
from pocketmq.model import GroupConfig, Permission, TopicConfig
from pocketmq.model.names import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    HALF_TOPIC,
    OFFSET_MOVED_TOPIC,
    OP_HALF_TOPIC,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    SYSTEM_TOPIC_PREFIX,
    TIMER_TOPIC,
)

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
        _topic(SELF_TEST_TOPIC),
        _topic(BENCHMARK_TOPIC, _BENCHMARK_QUEUES),
        _topic(cluster, _CLUSTER_QUEUES, _template(enabled=config.cluster_topic_enable)),
        _topic(broker, 1, _template(enabled=config.broker_topic_enable)),
        _topic(OFFSET_MOVED_TOPIC),
        _topic(SCHEDULE_TOPIC, _SCHEDULE_QUEUES),
        _topic(f"{cluster}_REPLY_TOPIC"),
        _topic(f"{SYSTEM_TOPIC_PREFIX}REVIVE_LOG_{cluster}", _REVIVE_QUEUES),
        _topic(f"{SYSTEM_TOPIC_PREFIX}SYNC_BROKER_MEMBER_{broker}", 1, _INHERIT),
        _topic(HALF_TOPIC),
        _topic(OP_HALF_TOPIC),
        _topic(TIMER_TOPIC),
    ]
    if config.auto_create_topic_enable:
        queues = config.default_topic_queue_nums
        topics.append(_topic(AUTO_CREATE_TOPIC, queues, _template(enabled=True)))
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
