"""Calls a broker makes to a client, or passes on to it: running info, consuming, replies."""

import msgspec

from pocketmq.model import ConsumeResult, MessageQueue, Subscription, WireValue
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Int32, Int64, RpcHeader, TopicHeader
from pocketmq.protocol.peers import BROKER, CLIENT
from pocketmq.protocol.request import RAW, STORED_MESSAGES, NoHeader, RequestRight, json_of, request
from pocketmq.protocol.requests.offsets import ConsumerStatus

PROP_NAME_SERVER = "PROP_NAMESERVER_ADDR"
PROP_THREADS = "PROP_THREADPOOL_CORE_SIZE"
PROP_ORDERLY = "PROP_CONSUMEORDERLY"
PROP_CONSUME_TYPE = "PROP_CONSUME_TYPE"
PROP_CLIENT_VERSION = "PROP_CLIENT_VERSION"
PROP_START_TIMESTAMP = "PROP_CONSUMER_START_TIMESTAMP"
"""Milliseconds; Java's tools fail without it."""
PROP_PROTOCOL = "PROP_CLIENT_PROTOCOL"
"""`GRPC` for a client behind PocketMQ's proxy, which pops; missing for all others."""
GRPC = "GRPC"
PROP_BALANCE_MODE = "PROP_BALANCE_MODE"
"""How a member of PocketMQ shares queues: a value of `BalanceMode`."""
PROP_BALANCE_REASON = "PROP_BALANCE_REASON"
"""Why the mode is not `sticky` although the strategy is."""
PROP_BALANCE_STAGES = "PROP_BALANCE_STAGES"
"""The member's queues and their stages, as `stages_text` in `model.group_balance` writes them."""


class ProcessQueueBody(WireValue, frozen=True, kw_only=True):
    """What a push consumer holds of a queue. Timestamps are milliseconds."""

    commit_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: int = 0
    cached_msg_size_in_mib: int = msgspec.field(name="cachedMsgSizeInMiB", default=0)
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    dropped: bool = msgspec.field(name="droped", default=False)
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


class PopProcessQueueInfo(WireValue, frozen=True, kw_only=True):
    """What a consumer in pop mode holds of a queue (5.x)."""

    wait_ack_count: int = 0
    dropped: bool = msgspec.field(name="droped", default=False)
    last_pop_timestamp: int = 0


class ConsumeStatus(WireValue, frozen=True, kw_only=True):
    """A consumer's rates for one topic; times are milliseconds."""

    pull_rt: float = msgspec.field(name="pullRT", default=0.0)
    pull_tps: float = msgspec.field(name="pullTPS", default=0.0)
    consume_rt: float = msgspec.field(name="consumeRT", default=0.0)
    consume_ok_tps: float = msgspec.field(name="consumeOKTPS", default=0.0)
    consume_failed_tps: float = msgspec.field(name="consumeFailedTPS", default=0.0)
    consume_failed_msgs: int = 0


class RunningInfo(WireValue, frozen=True, kw_only=True):
    """A consumer's report about itself (Java: ConsumerRunningInfo)."""

    properties: dict[str, str] = {}
    subscription_set: list[Subscription] = []
    mq_table: dict[MessageQueue, ProcessQueueBody] = {}
    mq_pop_table: dict[MessageQueue, PopProcessQueueInfo] = {}
    status_table: dict[str, ConsumeStatus] = {}
    user_consumer_info: dict[str, str] = {}
    jstack: str | None = None


class DirectConsumeResult(WireValue, frozen=True, kw_only=True):
    """What came of a message consumed on demand (Java: ConsumeMessageDirectlyResult)."""

    order: bool = False
    auto_commit: bool = True
    consume_result: ConsumeResult | None = None
    remark: str | None = None
    spent_time_mills: int = 0


class GetConsumerRunningInfoRequest(RpcHeader, frozen=True, kw_only=True):
    """Asks a consumer what it is doing."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


class ConsumeDirectlyRequest(TopicHeader, frozen=True, kw_only=True):
    """Makes a consumer handle one message now; on the way to it, the message is the body."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None


class GetConsumerStatusRequest(TopicHeader, frozen=True, kw_only=True):
    """Asks a group's clients for the offsets they have reached."""

    topic: str
    group: str
    client_addr: str | None = None


GET_CONSUMER_STATUS_FROM_CLIENT = request(
    Code.GET_CONSUMER_STATUS_FROM_CLIENT,
    GetConsumerStatusRequest,
    NoHeader,
    result=json_of(ConsumerStatus),
    served_by=CLIENT,
)
INVOKE_BROKER_TO_GET_CONSUMER_STATUS = request(
    Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
    GetConsumerStatusRequest,
    NoHeader,
    result=json_of(ConsumerStatus),
    right=RequestRight.to("Get", topic="Topic", group="Group"),
)
GET_CONSUMER_RUNNING_INFO = request(
    Code.GET_CONSUMER_RUNNING_INFO,
    GetConsumerRunningInfoRequest,
    NoHeader,
    result=json_of(RunningInfo),
    served_by=BROKER | CLIENT,
    right=RequestRight.to("Get", consumerGroup="Group"),
)
CONSUME_MESSAGE_DIRECTLY = request(
    Code.CONSUME_MESSAGE_DIRECTLY,
    ConsumeDirectlyRequest,
    NoHeader,
    body=STORED_MESSAGES,
    result=json_of(DirectConsumeResult),
    served_by=BROKER | CLIENT,
)


class PushReplyRequest(TopicHeader, frozen=True, kw_only=True):
    """Brings a reply to the producer that asked; the reply itself is the body."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool = False
    born_host: str
    store_host: str
    store_timestamp: Int64


PUSH_REPLY_MESSAGE_TO_CLIENT = request(
    Code.PUSH_REPLY_MESSAGE_TO_CLIENT, PushReplyRequest, NoHeader, body=RAW, served_by=CLIENT
)
