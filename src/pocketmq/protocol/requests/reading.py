"""Reading messages: pulling a queue, and looking messages up by key, id or place."""

from msgspec import field

from pocketmq.model import Subscription, WireValue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header, Int32, Int64, TopicHeader
from pocketmq.protocol.request import (
    STORED_MESSAGES,
    NoHeader,
    RequestQueue,
    RequestRight,
    json_of,
    request,
)
from pocketmq.protocol.requests.stats import TimeSpans


class ConsumeQueueEntry(WireValue, frozen=True, kw_only=True):
    """One entry, and whether a group's filter lets it through (Java: ConsumeQueueData)."""

    physic_offset: int = 0
    physic_size: int = 0
    tags_code: int = 0
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


class ConsumeQueuePage(WireValue, frozen=True, kw_only=True):
    """Some entries of a queue (Java: QueryConsumeQueueResponseBody)."""

    subscription_data: Subscription | None = None
    filter_data: str | None = None
    queue_data: list[ConsumeQueueEntry] | None = None
    max_queue_index: int = 0
    min_queue_index: int = 0


class PullRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks for messages of a queue from an offset on, waiting for some if the flag says so."""

    consumer_group: str
    topic: str
    lite_topic: str | None = None
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32  # 1 commit, 2 wait, 4 subscription given, 8 class filter, 16 lite pull
    commit_offset: Int64  # counts if sysFlag has bit 1
    suspend_timeout_millis: Int64
    subscription: str | None = None
    sub_version: Int64
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None  # 5.x
    request_source: Int32 | None = None  # which part of a proxy asks (5.x)
    proxy_forward_client_id: str | None = field(
        name="proxyFrowardClientId", default=None
    )  # Java's spelling


class PullResponse(Header, frozen=True, kw_only=True):
    """Where to continue, and the offsets of the queue; Java clients need the first four."""

    suggest_which_broker_id: Int64  # 0 is the master
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    forbidden_type: Int32 | None = None


PULL_MESSAGE = request(
    Code.PULL_MESSAGE,
    PullRequest,
    PullResponse,
    result=STORED_MESSAGES,
    queue=RequestQueue.PULL,
    main_port=True,
)
LITE_PULL_MESSAGE = request(
    Code.LITE_PULL_MESSAGE,
    PullRequest,
    PullResponse,
    result=STORED_MESSAGES,
    queue=RequestQueue.LITE_PULL,
    main_port=True,
)


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
    Code.QUERY_CONSUME_TIME_SPAN,
    QueryConsumeTimeSpanRequest,
    NoHeader,
    result=json_of(TimeSpans),
    right=RequestRight.to("Get", topic="Topic", group="Group"),
)
QUERY_CONSUME_QUEUE = request(
    Code.QUERY_CONSUME_QUEUE,
    QueryConsumeQueueRequest,
    NoHeader,
    result=json_of(ConsumeQueuePage),
    right=RequestRight.to("Get", topic="Topic", consumerGroup="Group", optional=("consumerGroup",)),
)
