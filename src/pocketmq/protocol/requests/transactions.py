"""Transactions: ending them, asking producers about them."""

from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.forms import STORED_MESSAGES
from pocketmq.protocol.header import Header, Int32, Int64, RpcHeader
from pocketmq.protocol.request import CLIENT, NoHeader, RequestQueue, request


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
    """Puts a half message that was given up back among those to be checked."""

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
