"""Making room when an operator says so: old messages (329), index space (306), topics (316)."""

import logging

from pocketmq.broker.saving import submit_offsets
from pocketmq.broker.state import BrokerState, Handler
from pocketmq.broker.upkeep.forced_deletion import clean_store
from pocketmq.errors import ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command

logger = logging.getLogger("pocketmq.broker")

_TRIMMED_AT_ONCE = 1000
"""Topics whose index is looked at while the caller waits; the rest is done by and by."""


def delete_old_messages(state: BrokerState, connection: Connection, request: Command) -> Command:
    """Delete what is older than it is kept, whatever the hour."""
    state.writer.end_turn()  # so that what the store does concerns nobody's answer
    dropped = clean_store(state, asked=True)
    logger.info("%s had %d old files deleted", connection.remote_address, dropped)
    return request.reply(ResponseCode.SUCCESS)


def trim_queues(state: BrokerState, _: Connection, request: Command) -> Command:
    """Free the index space of messages that are no longer kept."""
    state.writer.end_turn()
    state.store.queues.trim(_TRIMMED_AT_ONCE)
    return request.reply(ResponseCode.SUCCESS)


def delete_unused_topics(state: BrokerState, connection: Connection, request: Command) -> Command:
    """Delete the queues of topics that this broker no longer has."""
    state.writer.end_turn()
    for topic in state.store.queues.topics():
        if topic not in state.topics and not state.topics.is_system(topic):
            logger.info("%s had the queues of %s deleted", connection.remote_address, topic)
            state.store.delete_topic(topic)
            state.offsets.remove_topic(topic)
    submit_offsets(state)
    return request.reply(ResponseCode.SUCCESS)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.DELETE_EXPIRED_COMMITLOG: delete_old_messages,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: trim_queues,
    RequestCode.CLEAN_UNUSED_TOPIC: delete_unused_topics,
}
