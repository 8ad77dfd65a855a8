"""Sending messages, sending failed ones back, recalling delayed ones, and ending transactions."""

from msgspec import field, structs

from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.header import Header, Int32, Int64, RpcHeader, TopicHeader
from pocketmq.protocol.peers import CLIENT
from pocketmq.protocol.request import BATCH, RAW, STORED_MESSAGES, NoHeader, RequestQueue, request


class SendRequest(TopicHeader, frozen=True, kw_only=True):
    """Stores a message, or a batch; the form with long names (codes 10 and 324)."""

    producer_group: str
    topic: str
    default_topic: str  # the template when the topic is created by itself
    default_topic_queue_nums: Int32
    queue_id: Int32  # negative: the broker chooses
    sys_flag: Int32  # compression and transaction bits of the message
    born_timestamp: Int64
    flag: Int32  # the application's own number
    properties: str | None = None  # as one string, see the message format
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None
    batch: bool | None = None
    max_reconsume_times: Int32 | None = None  # set when a group sends to its retry topic

    def to_v2(self) -> "SendRequestV2":
        """Return the same request in the form with one-letter names."""
        return SendRequestV2(**structs.asdict(self))


class SendRequestV2(SendRequest, frozen=True, kw_only=True):
    """The same request with one-letter names, as clients send it (codes 310, 320 and 325)."""

    producer_group: str = field(name="a")
    topic: str = field(name="b")
    default_topic: str = field(name="c")
    default_topic_queue_nums: Int32 = field(name="d")
    queue_id: Int32 = field(name="e")
    sys_flag: Int32 = field(name="f")
    born_timestamp: Int64 = field(name="g")
    flag: Int32 = field(name="h")
    properties: str | None = field(name="i", default=None)
    reconsume_times: Int32 | None = field(name="j", default=None)
    unit_mode: bool | None = field(name="k", default=None)
    max_reconsume_times: Int32 | None = field(name="l", default=None)
    batch: bool | None = field(name="m", default=None)
    bname: str | None = field(name="n", default=None)

    def to_v1(self) -> SendRequest:
        """Return the same request in the form with long names."""
        return SendRequest(**structs.asdict(self))


class SendResponse(Header, frozen=True, kw_only=True):
    """Where a message was stored."""

    msg_id: str  # the offset message id; of a batch, ids joined by commas
    queue_id: Int32
    queue_offset: Int64  # of a batch, the first
    transaction_id: str | None = None  # the unique key of a half message; 5.x gives it for all
    batch_uniq_id: str | None = None
    recall_handle: str | None = None  # of a delayed message, to take it back
    region: str | None = field(name="MSG_REGION", default=None)
    trace_on: bool | None = field(name="TRACE_ON", default=None)  # absent means on


class SendBackRequest(RpcHeader, frozen=True, kw_only=True):
    """Has a message that failed delivered again later."""

    offset: Int64  # in the commit log
    group: str
    delay_level: Int32  # 0: the broker decides; negative: to the dead letters
    origin_msg_id: str | None = None  # the message's unique key
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None


class RecallRequest(TopicHeader, frozen=True, kw_only=True):
    """Takes back a delayed message before it is due."""

    producer_group: str | None = None
    topic: str
    recall_handle: str


class RecallResponse(Header, frozen=True, kw_only=True):
    """The message that was taken back."""

    msg_id: str
    region: str | None = field(name="MSG_REGION", default=None)


SEND_MESSAGE = request(
    Code.SEND_MESSAGE, SendRequest, SendResponse, body=RAW, queue=RequestQueue.SEND
)
CONSUMER_SEND_MSG_BACK = request(
    Code.CONSUMER_SEND_MSG_BACK, SendBackRequest, NoHeader, queue=RequestQueue.SEND
)
SEND_MESSAGE_V2 = request(
    Code.SEND_MESSAGE_V2, SendRequestV2, SendResponse, body=RAW, queue=RequestQueue.SEND
)
SEND_BATCH_MESSAGE = request(
    Code.SEND_BATCH_MESSAGE, SendRequestV2, SendResponse, body=BATCH, queue=RequestQueue.SEND
)
SEND_REPLY_MESSAGE = request(
    Code.SEND_REPLY_MESSAGE, SendRequest, SendResponse, body=RAW, queue=RequestQueue.UNLIMITED
)
SEND_REPLY_MESSAGE_V2 = request(
    Code.SEND_REPLY_MESSAGE_V2, SendRequestV2, SendResponse, body=RAW, queue=RequestQueue.UNLIMITED
)
RECALL_MESSAGE = request(
    Code.RECALL_MESSAGE, RecallRequest, RecallResponse, queue=RequestQueue.SEND
)


class EndTransactionRequest(RpcHeader, frozen=True, kw_only=True):
    """Commits or rolls back a half message."""

    topic: str | None = None
    producer_group: str
    tran_state_table_offset: Int64  # queue offset of the half message
    commit_log_offset: Int64
    commit_or_rollback: Int32  # 8 commit, 12 roll back, 0 not known yet
    from_transaction_check: bool = False
    msg_id: str  # the message's unique key
    transaction_id: str | None = None


class CheckTransactionStateRequest(RpcHeader, frozen=True, kw_only=True):
    """Asks a producer what became of a transaction; the half message is the body."""

    topic: str | None = None
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    msg_id: str | None = None  # the message's unique key
    transaction_id: str | None = None
    offset_msg_id: str | None = None


class CheckTransactionStateResponse(Header, frozen=True, kw_only=True):
    """An answer RocketMQ defines and never sends; producers end the transaction instead."""

    producer_group: str
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32


class ResumeCheckHalfMessageRequest(Header, frozen=True, kw_only=True):
    """Resumes the checks of a half message that was discarded after too many."""

    topic: str | None = None
    msg_id: str | None = None


END_TRANSACTION = request(
    Code.END_TRANSACTION,
    EndTransactionRequest,
    NoHeader,
    queue=RequestQueue.TRANSACTION,
    main_port=True,
)
CHECK_TRANSACTION_STATE = request(
    Code.CHECK_TRANSACTION_STATE,
    CheckTransactionStateRequest,
    CheckTransactionStateResponse,
    body=STORED_MESSAGES,
    served_by=CLIENT,
)
RESUME_CHECK_HALF_MESSAGE = request(
    Code.RESUME_CHECK_HALF_MESSAGE, ResumeCheckHalfMessageRequest, NoHeader
)
