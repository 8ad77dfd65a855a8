"""Requests with large answers wait while their client, or the server, has too many unsent bytes.

Owns which requests these are. How much is too much is decided by the transport.
"""

from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.net import Connection
from pocketmq.protocol.catalogue import REQUESTS
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.forms import NOTHING

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
