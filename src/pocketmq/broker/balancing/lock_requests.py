"""Locks on queues (41, 42), for consumers that keep the order."""

from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol.bodies.locks import LockedQueues, LockQueues, UnlockQueues
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.json_values import decode_body, encode_body


def lock(state: BrokerState, _: Connection, request: Command) -> Command:
    """Lock queues for a member, or renew its locks; the answer names those it has."""
    wanted = decode_body(request.body, LockQueues)
    granted = state.locks.lock(
        wanted.consumer_group, wanted.client_id, wanted.mq_set, state.steady()
    )
    return request.reply(
        ResponseCode.SUCCESS, None, None, encode_body(LockedQueues(locked=granted))
    )


def unlock(state: BrokerState, _: Connection, request: Command) -> Command | None:
    """Give queues back; what the member does not hold stays as it is."""
    given = decode_body(request.body, UnlockQueues)
    state.locks.unlock(given.consumer_group, given.client_id, given.mq_set)
    return request.reply(ResponseCode.SUCCESS)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.LOCK_BATCH_MQ: lock,
    RequestCode.UNLOCK_BATCH_MQ: unlock,
}
