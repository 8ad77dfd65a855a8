"""How a topic is set up on one broker."""

from pocketmq.model.flags import Permission
from pocketmq.model.kinds import TopicFilterType
from pocketmq.model.topic_mapping import TopicMappingDetail
from pocketmq.model.value import WireValue


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
