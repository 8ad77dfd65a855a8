"""Figures tools ask for: what the queues of a topic hold (202), how much goes through (315)."""

from pocketmq.broker.state import BrokerState, Handler
from pocketmq.errors import ResponseCode
from pocketmq.model.queue import MessageQueue
from pocketmq.net import Connection
from pocketmq.protocol.bodies.stats import OffsetRange, TopicStats
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.json_values import encode_body
from pocketmq.protocol.requests.stats import ViewBrokerStatsRequest
from pocketmq.protocol.requests.topics import GetTopicStatsRequest


def topic(state: BrokerState, _: Connection, request: Command) -> Command:
    """Give the bounds of a topic's queues here, and when the last message of each was stored."""
    name = request.header(GetTopicStatsRequest).topic
    config = state.topics.get(name)
    if config is None:
        return request.reply(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
    ids = range(max(config.read_queue_nums, config.write_queue_nums))
    broker = state.config.broker_name
    table = {MessageQueue(name, broker, number): _held(state, name, number) for number in ids}
    body = TopicStats(offset_table=table, topic_put_tps=state.stats.stored_rate(name))
    return request.reply(ResponseCode.SUCCESS, None, None, encode_body(body))


def _held(state: BrokerState, name: str, number: int) -> OffsetRange:
    queue = state.store.queue(name, number)
    if queue is None or queue.next_offset == 0:
        return OffsetRange()
    return OffsetRange(
        min_offset=queue.min_offset,
        max_offset=queue.next_offset,
        last_update_timestamp=state.store.store_time(queue, queue.next_offset - 1),
    )


def view(state: BrokerState, _: Connection, request: Command) -> Command:
    """Give sums and rates of one statistic over the last minute, hour and day."""
    header = request.header(ViewBrokerStatsRequest)
    found = state.stats.view(header.stats_name, header.stats_key)
    if found is None:
        remark = f"The stats <{header.stats_name}> <{header.stats_key}> not exist"
        return request.reply(ResponseCode.SYSTEM_ERROR, remark)
    return request.reply(ResponseCode.SUCCESS, body=encode_body(found))


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.GET_TOPIC_STATS_INFO: topic,
    RequestCode.VIEW_BROKER_STATS_DATA: view,
}
