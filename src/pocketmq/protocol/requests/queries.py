"""Looking up messages, and what lies behind them."""

from msgspec import field

from pocketmq.protocol.bodies.consume_queue import ConsumeQueuePage
from pocketmq.protocol.bodies.stats import TimeSpans
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import STORED_MESSAGES, json_of
from pocketmq.protocol.header import Header, Int32, Int64, TopicHeader
from pocketmq.protocol.request import NoHeader, RequestQueue, request


class QueryMessageRequest(TopicHeader, frozen=True, kw_only=True):
    """Looks for messages by key."""

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64
    index_type: str | None = None
    last_key: str | None = None
    unique_key_query: bool | None = field(name="_UNIQUE_KEY_QUERY", default=None)


class QueryMessageResponse(Header, frozen=True, kw_only=True):
    """How far the key index reaches; the messages are the body."""

    index_last_update_timestamp: Int64
    index_last_update_phyoffset: Int64


class ViewMessageRequest(Header, frozen=True, kw_only=True):
    """Reads one message by its place in the commit log."""

    topic: str | None = None
    offset: Int64


class QueryConsumeQueueRequest(TopicHeader, frozen=True, kw_only=True):
    """Looks at the entries of a queue, and what a group's filter does with them."""

    topic: str | None = None
    queue_id: Int32 = 0
    index: Int64 = 0
    count: Int32 = 0
    consumer_group: str | None = None


class QueryConsumeTimeSpanRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks what times the messages of a topic span, and where a group is."""

    topic: str
    group: str


QUERY_MESSAGE = request(
    Code.QUERY_MESSAGE,
    QueryMessageRequest,
    QueryMessageResponse,
    result=STORED_MESSAGES,
    queue=RequestQueue.UNLIMITED,
)
VIEW_MESSAGE_BY_ID = request(
    Code.VIEW_MESSAGE_BY_ID,
    ViewMessageRequest,
    NoHeader,
    result=STORED_MESSAGES,
    queue=RequestQueue.UNLIMITED,
)
QUERY_CONSUME_TIME_SPAN = request(
    Code.QUERY_CONSUME_TIME_SPAN, QueryConsumeTimeSpanRequest, NoHeader, result=json_of(TimeSpans)
)
QUERY_CONSUME_QUEUE = request(
    Code.QUERY_CONSUME_QUEUE, QueryConsumeQueueRequest, NoHeader, result=json_of(ConsumeQueuePage)
)
