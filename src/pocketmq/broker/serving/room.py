"""Requests with large answers wait while their client, or the server, holds too many unsent bytes.

Owns which requests these are. How much is too much is the transport's to say.
"""

from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.net import Connection
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.command import Command

_SMALL_ANSWERS = frozenset(
    {
        Code.SEND_MESSAGE,
        Code.SEND_MESSAGE_V2,
        Code.SEND_BATCH_MESSAGE,
        Code.CONSUMER_SEND_MSG_BACK,
        Code.END_TRANSACTION,
        Code.RECALL_MESSAGE,
        Code.SEND_REPLY_MESSAGE,
        Code.SEND_REPLY_MESSAGE_V2,
        Code.ACK_MESSAGE,
        Code.BATCH_ACK_MESSAGE,
        Code.CHANGE_MESSAGE_INVISIBLETIME,
        Code.HEART_BEAT,
        Code.UNREGISTER_CLIENT,
        Code.CHECK_CLIENT_CONFIG,
        Code.UPDATE_CONSUMER_OFFSET,
        Code.QUERY_CONSUMER_OFFSET,
        Code.GET_MAX_OFFSET,
        Code.GET_MIN_OFFSET,
        Code.SEARCH_OFFSET_BY_TIMESTAMP,
        Code.LOCK_BATCH_MQ,
        Code.UNLOCK_BATCH_MQ,
        Code.GET_CONSUMER_LIST_BY_GROUP,
    }
)
"""Requests whose answers cost no memory worth a delay."""


class NoRoom(Exception):
    """The request is to be carried out later; nothing has been done for it."""


def with_room(code: int, handler: Handler) -> Handler:
    """Return a handler that raises `NoRoom` while no large answer should be made."""
    if code in _SMALL_ANSWERS:
        return handler

    def handle(state: BrokerState, connection: Connection, request: Command) -> Answer:
        if connection.crowded:
            raise NoRoom
        return handler(state, connection, request)

    return handle
