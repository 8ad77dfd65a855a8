"""How long a request may wait for its turn, and what it is told that waited longer. Pure.

Java's rule (BrokerFastFailure): an answer that says "busy" at once is worth more than one that
comes when nobody waits any more, and a send that is carried out after its sender has given up
would be stored twice. Here a request waits only in what was read from its own connection and is
handed over in turns with the others'; beyond that the socket holds its sender back.
"""

from pocketmq.broker.config import BrokerConfig
from pocketmq.errors import ResponseCode
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.command import Command

SHORT = 0.01
"""Seconds nobody needs to look at."""

_SEND, _PULL, _LITE, _ACK = "send", "pull", "lite_pull", "ack"
_BEAT, _TRANSACTION, _ADMIN = "heartbeat", "transaction", "admin_broker"
_QUEUES: dict[int, str | None] = {
    Code.SEND_MESSAGE: _SEND,
    Code.SEND_MESSAGE_V2: _SEND,
    Code.SEND_BATCH_MESSAGE: _SEND,
    Code.CONSUMER_SEND_MSG_BACK: _SEND,
    Code.RECALL_MESSAGE: _SEND,
    Code.PULL_MESSAGE: _PULL,
    Code.PEEK_MESSAGE: _PULL,
    Code.POP_MESSAGE: _PULL,
    Code.NOTIFICATION: _PULL,
    Code.POLLING_INFO: _PULL,
    Code.LITE_PULL_MESSAGE: _LITE,
    Code.ACK_MESSAGE: _ACK,
    Code.BATCH_ACK_MESSAGE: _ACK,
    Code.CHANGE_MESSAGE_INVISIBLETIME: _ACK,
    Code.HEART_BEAT: _BEAT,
    Code.END_TRANSACTION: _TRANSACTION,
    **dict.fromkeys(
        (
            Code.SEND_REPLY_MESSAGE,
            Code.SEND_REPLY_MESSAGE_V2,
            Code.QUERY_MESSAGE,
            Code.VIEW_MESSAGE_BY_ID,
            Code.UNREGISTER_CLIENT,
            Code.CHECK_CLIENT_CONFIG,
            Code.GET_CONSUMER_LIST_BY_GROUP,
            Code.UPDATE_CONSUMER_OFFSET,
            Code.QUERY_CONSUMER_OFFSET,
            Code.QUERY_ASSIGNMENT,
            Code.SET_MESSAGE_REQUEST_MODE,
        )
    ),
}
"""Java's queues of requests by code; None: nobody clears it. All other requests are for tools."""


def longest_wait(config: BrokerConfig, code: int) -> float | None:
    """Give the seconds a request of this code may wait; None for one that may for ever."""
    queue = _QUEUES.get(code, _ADMIN)
    if queue is None or not config.broker_fast_failure_enable:
        return None
    return float(getattr(config, f"wait_time_mills_in_{queue}_queue")) / 1000


def busy_answer(
    config: BrokerConfig, request: Command, waited: float, queued: int
) -> Command | None:
    """Give the answer to a request that waited too long, in Java's words, else None."""
    longest = longest_wait(config, request.code)
    if longest is None or waited < longest:
        return None
    return request.reply(
        ResponseCode.SYSTEM_BUSY,
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
        f"period in queue: {waited * 1000:.0f}ms, size of queue: {queued}",
    )
