"""Figures tools ask for: what the queues of a topic hold (202)."""

from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import ResponseCode
from pocketmq.model.queue import MessageQueue
from pocketmq.net import Connection
from pocketmq.protocol.bodies.stats import OffsetRange, TopicStats
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.headers.topics import GetTopicStatsRequest
from pocketmq.protocol.json_values import encode_body


def topic(state: BrokerState, _: Connection, request: Command) -> Command:
    """Give the bounds of a topic's queues here, and when the last message of each was stored."""
    name = request.header(GetTopicStatsRequest).topic
    config = state.topics.get(name)
    if config is None:
        return request.reply(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
    ids = range(max(config.read_queue_nums, config.write_queue_nums))
    broker = state.config.broker_name
    table = {MessageQueue(name, broker, number): _held(state, name, number) for number in ids}
    return request.reply(
        ResponseCode.SUCCESS, None, None, encode_body(TopicStats(offset_table=table))
    )


def _held(state: BrokerState, name: str, number: int) -> OffsetRange:
    queue = state.store.queue(name, number)
    if queue is None or queue.next_offset == 0:
        return OffsetRange()
    return OffsetRange(
        min_offset=queue.min_offset,
        max_offset=queue.next_offset,
        last_update_timestamp=state.store.store_time(queue, queue.next_offset - 1),
    )


HANDLERS: dict[RequestCode, Handler] = {RequestCode.GET_TOPIC_STATS_INFO: topic}
