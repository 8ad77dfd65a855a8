"""A topic's set-up on one broker, and static topics (5.x): mappings and logical queues.

The logical queues of a static topic may move between brokers. Clients see them on one broker
that does not exist; each queue is led by a real broker, which may change. The rules are Java's
(ClientMetadata): members of one group in both languages see the same queues. Name servers are
not trusted: counts are checked before lists are built. Rules about mappings are in
`balance.static_topics`.
"""

from collections.abc import Iterable, Mapping

from pocketmq.errors import BodyMalformed
from pocketmq.model.kinds import Permission, TopicFilterType
from pocketmq.model.queue import MessageQueue
from pocketmq.model.value import WireValue

LOGICAL_BROKER = "__syslo__"
"""How the names of brokers start that stand for all logical queues of a scope."""
NO_LEADER = "__syslo__none__"
"""The leader of a logical queue that no broker has registered."""
GLOBAL_SCOPE = "__global__"
MAX_STATIC_QUEUES = 16_384
"""Logical queues of one topic at most."""


class TopicMapping(WireValue, frozen=True, kw_only=True):
    """Which logical queues of a topic one broker holds now (Java: TopicQueueMappingInfo)."""

    topic: str | None = None
    scope: str = GLOBAL_SCOPE
    total_queues: int = 0
    bname: str | None = None
    epoch: int = 0
    dirty: bool = False
    curr_id_map: dict[int, int] = {}


class MappedRange(WireValue, frozen=True, kw_only=True):
    """A stretch of a logical queue that lies in one physical queue (LogicQueueMappingItem)."""

    gen: int = 0
    queue_id: int = 0
    bname: str | None = None
    logic_offset: int = 0
    start_offset: int = 0
    end_offset: int = -1
    time_of_start: int = -1
    time_of_end: int = -1


class TopicMappingDetail(TopicMapping, frozen=True, kw_only=True):
    """The mapping with every queue's history (Java: TopicQueueMappingDetail)."""

    hosted_queues: dict[int, list[MappedRange]] = {}


class TopicConfig(WireValue, frozen=True, kw_only=True):
    """A topic's queues, permissions and attributes on one broker; the defaults are Java's."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = int(Permission.READ | Permission.WRITE)
    topic_filter_type: TopicFilterType = TopicFilterType.SINGLE_TAG
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] = {}


class MappedTopicConfig(TopicConfig, frozen=True, kw_only=True):
    """A topic's set-up with its mapping, if it is static (Java: TopicConfigAndQueueMapping)."""

    mapping_detail: TopicMappingDetail | None = None


class TopicMappingPlan(WireValue, frozen=True, kw_only=True):
    """How a static topic shall be mapped (Java: TopicRemappingDetailWrapper)."""

    topic: str
    type: str
    epoch: int
    broker_config_map: dict[str, MappedTopicConfig] = {}
    broker_to_map_in: list[str] = []
    broker_to_map_out: list[str] = []


def logical_broker(scope: str) -> str:
    """Return the name that stands for the broker of a scope's logical queues."""
    return LOGICAL_BROKER + (scope[2:] if scope == GLOBAL_SCOPE else scope)


def is_logical(queue: MessageQueue) -> bool:
    """Return whether a queue is a logical queue of a static topic."""
    return queue.broker_name.startswith(LOGICAL_BROKER)


def leaders(topic: str, mappings: Mapping[str, TopicMapping]) -> dict[MessageQueue, str]:
    """Return the broker that leads each logical queue, in the order of queue ids.

    The newest mapping that has a queue decides. A queue that no broker has registered has the
    leader `NO_LEADER`: shares must not change while a queue moves. Raises `BodyMalformed` if the
    mappings declare too many queues.
    """
    scopes: dict[str, list[TopicMapping]] = {}
    for _, mapping in sorted(mappings.items()):
        scopes.setdefault(mapping.scope, []).append(mapping)
    found: dict[MessageQueue, str] = {}
    for scope, group in scopes.items():
        total = max(mapping.total_queues for mapping in group)
        if total + len(found) > MAX_STATIC_QUEUES:
            raise BodyMalformed(
                "topic route",
                f"{total} logical queues of topic {topic!r} exceed the limit of "
                f"{MAX_STATIC_QUEUES}",
            )
        by_id = _by_id(group)
        broker = logical_broker(scope)
        for queue_id in range(total):
            found[MessageQueue(topic, broker, queue_id)] = by_id.get(queue_id, NO_LEADER)
    return found


def _by_id(mappings: Iterable[TopicMapping]) -> dict[int, str]:
    found: dict[int, str] = {}
    for mapping in sorted(mappings, key=lambda each: each.epoch):
        if mapping.bname is not None:
            found.update(dict.fromkeys(mapping.curr_id_map, mapping.bname))
    return found
