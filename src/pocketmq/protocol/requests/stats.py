"""Statistics of topics, groups and brokers."""

from pocketmq.model import MessageQueue, WireValue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header, TopicHeader
from pocketmq.protocol.request import NoHeader, RequestRight, json_of, request


class OffsetRange(WireValue, frozen=True, kw_only=True):
    """What a queue holds (Java: TopicOffset)."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


class TopicStatsBody(WireValue, frozen=True, kw_only=True):
    """What each queue of a topic holds on one broker (Java: TopicStatsTable)."""

    offset_table: dict[MessageQueue, OffsetRange] = {}
    topic_put_tps: float = 0.0


class QueueProgress(WireValue, frozen=True, kw_only=True):
    """How far a group is in a queue (Java: OffsetWrapper)."""

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int = 0
    last_timestamp: int = 0


class ConsumeStatsBody(WireValue, frozen=True, kw_only=True):
    """How far a group is in each queue of one broker."""

    offset_table: dict[MessageQueue, QueueProgress] = {}
    consume_tps: float = 0.0

    def lag(self) -> int:
        """Count the messages that the group has not committed yet."""
        return sum(each.broker_offset - each.consumer_offset for each in self.offset_table.values())

    def in_flight(self) -> int:
        """Count the messages that are pulled but not committed yet."""
        return sum(each.pull_offset - each.consumer_offset for each in self.offset_table.values())


class BrokerConsumeStats(WireValue, frozen=True, kw_only=True):
    """How far every group of a broker is (Java: ConsumeStatsList)."""

    consume_stats_list: list[dict[str, list[ConsumeStatsBody]]] = []
    broker_addr: str | None = None
    total_diff: int = 0
    total_inflight_diff: int = 0


class StatsItem(WireValue, frozen=True, kw_only=True):
    """A counter over one span of time (Java: BrokerStatsItem)."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class BrokerStats(WireValue, frozen=True, kw_only=True):
    """A counter over the last minute, hour and day (Java: BrokerStatsData)."""

    stats_minute: StatsItem | None = None
    stats_hour: StatsItem | None = None
    stats_day: StatsItem | None = None


class QueueTimeSpan(WireValue, frozen=True, kw_only=True):
    """When a queue's messages were stored, and how far behind a group is in time.

    Java also sends each time as text, and ignores it when it reads.
    """

    message_queue: MessageQueue | None = None
    min_time_stamp: int = 0
    max_time_stamp: int = 0
    consume_time_stamp: int = 0
    delay_time: int = 0
    min_time_stamp_str: str | None = None
    max_time_stamp_str: str | None = None
    consume_time_stamp_str: str | None = None


class TimeSpans(WireValue, frozen=True, kw_only=True):
    """The time spans of a topic's queues (Java: QueryConsumeTimeSpanBody)."""

    consume_time_span_set: list[QueueTimeSpan] = []


class GetConsumeStatsRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks how far a group is behind."""

    consumer_group: str
    topic: str | None = None  # one topic; absent for all
    topic_list: str | None = None  # some topics, joined by `;` (5.x)


class GetBrokerConsumeStatsRequest(Header, frozen=True, kw_only=True):
    """Asks how far all groups are behind."""

    is_order: bool


class ViewBrokerStatsRequest(Header, frozen=True, kw_only=True):
    """Asks for the sums and rates of one statistic."""

    stats_name: str
    stats_key: str


GET_CONSUME_STATS = request(
    Code.GET_CONSUME_STATS,
    GetConsumeStatsRequest,
    NoHeader,
    result=json_of(ConsumeStatsBody),
    right=RequestRight.to(
        "Get",
        consumerGroup="Group",
        topic="Topic",
        topicList="Topic",
        optional=("topic", "topicList"),
    ),
)
VIEW_BROKER_STATS_DATA = request(
    Code.VIEW_BROKER_STATS_DATA, ViewBrokerStatsRequest, NoHeader, result=json_of(BrokerStats)
)
GET_BROKER_CONSUME_STATS = request(
    Code.GET_BROKER_CONSUME_STATS,
    GetBrokerConsumeStatsRequest,
    NoHeader,
    result=json_of(BrokerConsumeStats),
)
