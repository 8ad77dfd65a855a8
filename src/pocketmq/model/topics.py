"""A topic's set-up on one broker, and the mapping of static topics (5.x).

The logical queues of a static topic may move between brokers. Rules about mappings are in
`balance.static_topics`.
"""

from pocketmq.model.kinds import Permission, TopicFilterType
from pocketmq.model.value import WireValue


class TopicMapping(WireValue, frozen=True, kw_only=True):
    """Which logical queues of a topic one broker holds now (Java: TopicQueueMappingInfo)."""

    topic: str | None = None
    scope: str = "__global__"
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
