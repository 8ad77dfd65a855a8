"""Statistics of topics, groups and brokers."""

from pocketmq.protocol.header import Header, TopicHeader


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
