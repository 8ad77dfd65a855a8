"""Requests under load: refused after waiting too long, or put off while answers pile up.

Java's rule (BrokerFastFailure): an immediate "busy" is worth more than an answer that comes when
the client no longer waits, and a send that is executed after its sender timed out would be stored
twice. Here a request waits only in its connection's read buffer, and connections are served
round-robin; beyond that the socket holds its sender back. Requests with large answers wait, too,
while their client or the server has too many unsent bytes; the transport decides the limit.
"""

from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.errors import ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.catalogue import REQUESTS
from pocketmq.protocol.request import NOTHING, RequestQueue

SHORT = 0.01
"""Seconds of waiting that are not worth a check."""


def _setting(queue: RequestQueue) -> str | None:
    """Return the setting that limits the wait in a queue; None for a queue without a limit."""
    return None if queue is RequestQueue.UNLIMITED else f"wait_time_mills_in_{queue.value}_queue"


_SETTINGS = {code: _setting(row.queue) for code, row in REQUESTS.items()}
_OF_TOOLS = _setting(RequestQueue.ADMIN)


def longest_wait(config: BrokerConfig, code: int) -> float | None:
    """Return the seconds a request of this code may wait; None for one without a limit."""
    setting = _SETTINGS.get(code, _OF_TOOLS)
    if setting is None or not config.broker_fast_failure_enable:
        return None
    return float(getattr(config, setting)) / 1000


def busy_answer(
    config: BrokerConfig, request: Command, waited: float, queued: int
) -> Command | None:
    """Return the answer to a request that waited too long, in Java's words, else None."""
    longest = longest_wait(config, request.code)
    if longest is None or waited < longest:
        return None
    return request.reply(
        ResponseCode.SYSTEM_BUSY,
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
        f"period in queue: {waited * 1000:.0f}ms, size of queue: {queued}",
    )


_PROMPT = frozenset({RequestCode.LOCK_BATCH_MQ, RequestCode.GET_CONSUMER_LIST_BY_GROUP})
"""Small lists without which a consumer loses its queues, or cannot rebalance."""
_LARGE_ANSWERS = frozenset(
    code for code, row in REQUESTS.items() if row.result is not NOTHING and code not in _PROMPT
)


class TooManyUnsentBytes(Exception):
    """The request is to be carried out later; nothing has been done for it."""


def with_back_pressure(code: int, handler: Handler) -> Handler:
    """Return a handler that raises `TooManyUnsentBytes` while no large answer should be made.

    Answers without a body cost too little memory to delay what they answer, above all sends.
    """
    if code not in _LARGE_ANSWERS:
        return handler

    def handle(state: BrokerState, connection: Connection, request: Command) -> Answer:
        if connection.crowded:
            raise TooManyUnsentBytes
        return handler(state, connection, request)

    return handle
