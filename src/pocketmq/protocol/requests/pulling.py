"""Pulling messages of one queue."""

from msgspec import field

from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import STORED_MESSAGES
from pocketmq.protocol.header import Header, Int32, Int64, TopicHeader
from pocketmq.protocol.request import RequestQueue, request


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
    """Where to go on, and what the queue holds; Java clients need the first four."""

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
