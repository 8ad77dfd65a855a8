"""Pop requests (200050 to 200055, 200151): loaded with the first one, as most brokers get none."""

import asyncio

from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.model.names import REVIVE_TOPIC_PREFIX
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode

_serving: dict[int, Handler] = {}


def serve(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Answer a request of pop consumption; see `pop.requests`."""
    handler = _serving.get(request.code) or _loaded(request.code)
    if state.pops is None:
        start_popping(state)
    return handler(state, connection, request)


def _loaded(code: int) -> Handler:
    from pocketmq.broker.pop.requests import HANDLERS as REAL

    _serving.update({int(each): handler for each, handler in REAL.items()})
    return _serving[code]


def start_popping(state: BrokerState) -> None:
    """Read what was popped before, and serve pops from now on."""
    from pocketmq.broker.pop.redelivery import PopLifecycle
    from pocketmq.broker.pop.short_ways import SHORT_WAYS

    popping = PopLifecycle(state, state.writer, asyncio.get_running_loop())
    popping.start()
    assert state.pops is not None
    state.writer.before_write.append(state.pops.seal)
    state.features.append(popping)
    state.short_ways.update(SHORT_WAYS)


def has_popped(state: BrokerState) -> bool:
    """Return whether messages were popped before that may not be acknowledged yet."""
    journal = state.store.queue(REVIVE_TOPIC_PREFIX + state.config.broker_cluster_name, 0)
    return journal is not None and journal.next_offset > 0


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
