"""Statistics of topics, groups and brokers."""

from pocketmq.protocol.bodies.stats import BrokerConsumeStats, BrokerStats, ConsumeStats
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import json_of
from pocketmq.protocol.header import Header, TopicHeader
from pocketmq.protocol.request import NoHeader, request


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
    Code.GET_CONSUME_STATS, GetConsumeStatsRequest, NoHeader, result=json_of(ConsumeStats)
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
