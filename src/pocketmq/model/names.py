"""Topic and group names: what is allowed or reserved, derived topics, namespaces.

The limits are those of RocketMQ 5.x, the stricter of the two lines we speak.
"""

import re

from pocketmq.errors import NameInvalid

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"

AUTO_CREATE_TOPIC = "TBW102"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
BENCHMARK_TOPIC = "BenchmarkTest"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
DISCARDED_HALF_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
CHECKPOINT_TOPIC = "CHECKPOINT_TOPIC"
TIMER_TOPIC = SYSTEM_TOPIC_PREFIX + "wheel_timer"
REVIVE_TOPIC_PREFIX = SYSTEM_TOPIC_PREFIX + "REVIVE_LOG_"

INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
TOOLS_GROUP = "TOOLS_CONSUMER"

NOT_SENDABLE_TOPICS = frozenset(
    {
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        DISCARDED_HALF_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
    }
)
SYSTEM_TOPICS = NOT_SENDABLE_TOPICS | {
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    TRACE_TOPIC,
    CHECKPOINT_TOPIC,
}
SYSTEM_GROUPS = frozenset(
    {
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_PULL",
        "CID_ONS-HTTP-PROXY",
        "CID_RMQ_SYS_TRANS",
        "FILTERSRV_CONSUMER",
        INNER_PRODUCER_GROUP,
        "SCHEDULE_CONSUMER",
        "SELF_TEST_C_GROUP",
        TOOLS_GROUP,
        "__MONITOR_CONSUMER",
    }
)

_ALLOWED = re.compile(r"[%|a-zA-Z0-9_-]+\Z")
_ALLOWED_TEXT = "allowed are letters, digits and % | _ -"
_TOPIC_LIMIT = 127
_DERIVED_TOPIC_LIMIT = 255
_GROUP_LIMIT = 120


def check_topic(topic: str) -> None:
    """Raise `NameInvalid` unless RocketMQ 5.x would accept this topic name."""
    _check_text("topic", topic)
    derived = topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
    _check("topic", topic, _DERIVED_TOPIC_LIMIT if derived else _TOPIC_LIMIT)


def check_group(group: str) -> None:
    """Raise `NameInvalid` unless RocketMQ 5.x would accept this group name."""
    _check_text("group", group)
    _check("group", group, _GROUP_LIMIT)


def check_producer_group(group: str) -> None:
    """Raise `NameInvalid` for names producers may not use."""
    check_group(group)
    if group == "DEFAULT_PRODUCER":
        raise NameInvalid("group", group, "it is reserved by RocketMQ; choose another name")


def check_consumer_group(group: str) -> None:
    """Raise `NameInvalid` for names consumers may not use."""
    check_group(group)
    if group == "DEFAULT_CONSUMER":
        raise NameInvalid("group", group, "it is reserved by RocketMQ; choose another name")


def _check_text(kind: str, name: object) -> None:
    if not isinstance(name, str):
        raise NameInvalid(kind, repr(name), "it must be a string")


def _check(kind: str, name: str, limit: int) -> None:
    if not name.strip():
        raise NameInvalid(kind, name, "it must not be empty")
    if not _ALLOWED.match(name):
        raise NameInvalid(kind, name, _ALLOWED_TEXT)
    if len(name) > limit:
        raise NameInvalid(kind, name, f"it has {len(name)} characters; at most {limit} are allowed")


def retry_topic(group: str) -> str:
    """Return the topic from which failed messages are redelivered to a group."""
    return RETRY_PREFIX + group


def dead_letter_topic(group: str) -> str:
    """Return the topic that keeps a group's messages after their last retry."""
    return DLQ_PREFIX + group


def is_retry_topic(topic: str) -> bool:
    """Return whether a topic is a retry topic."""
    return topic.startswith(RETRY_PREFIX)


def is_dead_letter_topic(topic: str) -> bool:
    """Return whether a topic keeps messages that failed too often."""
    return topic.startswith(DLQ_PREFIX)


def is_system_topic(topic: str) -> bool:
    """Return whether this is a system topic of RocketMQ."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def is_system_group(group: str) -> bool:
    """Return whether this is a system group, which no namespace changes."""
    return group.startswith(SYSTEM_GROUP_PREFIX)


def wrap_namespace(namespace: str, name: str) -> str:
    """Return the name that travels on the wire for a topic or group inside a namespace."""
    if not namespace or not name or is_system_topic(name) or is_system_group(name):
        return name
    prefix, bare = _split_prefix(name)
    if bare.startswith(namespace + "%"):
        return name
    return f"{prefix}{namespace}%{bare}"


def unwrap_namespace(namespace: str, name: str) -> str:
    """Undo `wrap_namespace`; names of other namespaces stay as they are."""
    prefix, bare = _split_prefix(name)
    if not namespace or not bare.startswith(namespace + "%"):
        return name
    return prefix + bare[len(namespace) + 1 :]


def _split_prefix(name: str) -> tuple[str, str]:
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name[len(prefix) :]
    return "", name
