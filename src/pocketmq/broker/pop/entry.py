"""Popping (200050 to 200055, 200151): loaded when first asked for, as most brokers never are."""

from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.net import Connection
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command

_serving: dict[int, Handler] = {}


def serve(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Answer a request of pop consumption; see `pop.requests`."""
    handler = _serving.get(request.code) or _loaded(request.code)
    if state.pops is None:
        state.begin_popping()
    return handler(state, connection, request)


def _loaded(code: int) -> Handler:
    from pocketmq.broker.pop.requests import HANDLERS as REAL

    _serving.update({int(each): handler for each, handler in REAL.items()})
    return _serving[code]


HANDLERS: dict[RequestCode, Handler] = dict.fromkeys(
    (
        RequestCode.POP_MESSAGE,
        RequestCode.ACK_MESSAGE,
        RequestCode.BATCH_ACK_MESSAGE,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        RequestCode.NOTIFICATION,
        RequestCode.PEEK_MESSAGE,
        RequestCode.POLLING_INFO,
    ),
    serve,
)
