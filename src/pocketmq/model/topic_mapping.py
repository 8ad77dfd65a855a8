"""Static topics (5.x): logical queues that may move between brokers.

PocketMQ passes these values on; it makes no static topics of its own.
"""

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
