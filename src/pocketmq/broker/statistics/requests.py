"""Figures for tools: runtime info (28), the queues of a topic (202), counters over time (315).

Thread pools and their queues are Java's; there are none here, so they are always empty.
"""

import shutil

from pocketmq.broker.state import AnyHandler, BrokerState
from pocketmq.errors import ResponseCode
from pocketmq.model import MessageQueue
from pocketmq.model.names import SCHEDULE_TOPIC
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.protocol.peers import CURRENT_VERSION, version_name
from pocketmq.protocol.requests import key_values, stats, topics

_POOLS = {"send": 10_000, "pull": 100_000, "query": 20_000, "litePull": 100_000, "ack": 100_000}
_UNITS = "KMGTPE"


def runtime_info(state: BrokerState, _: Connection, request: Command) -> Command:
    """Return what `mqadmin clusterList` and `brokerStatus` show."""
    return request.reply(
        ResponseCode.SUCCESS, body=encode_body(key_values.KVTable(table=figures(state)))
    )


def figures(state: BrokerState) -> dict[str, str]:
    """Return the broker's figures by Java's names; every value is text."""
    version = {
        "brokerVersionDesc": version_name(CURRENT_VERSION),
        "brokerVersion": str(CURRENT_VERSION),
        "brokerActive": "true",
    }
    return version | _queues() | _traffic(state) | _store(state) | _waiting(state)


def _queues() -> dict[str, str]:
    idle = {"EndTransactionQueueSize": "0", "EndTransactionThreadPoolQueueCapacity": "100000"}
    for pool, capacity in _POOLS.items():
        idle[f"{pool}ThreadPoolQueueSize"] = "0"
        idle[f"{pool}ThreadPoolQueueCapacity"] = str(capacity)
        idle[f"{pool}ThreadPoolQueueHeadWaitTimeMills"] = "0"
    return idle


def _traffic(state: BrokerState) -> dict[str, str]:
    traffic, rates = state.traffic, state.traffic.rates()
    total = tuple(a + b for a, b in zip(rates["found"], rates["missed"], strict=True))
    transferred = _three(rates["out"])
    size = traffic.bytes_in / traffic.messages_in if traffic.messages_in else 0.0
    (put_yesterday, get_yesterday), (put_today, get_today) = traffic.mornings
    return {
        "bootTimestamp": str(state.booted_ms),
        "runtime": _span(state.clock.now_ms() - state.booted_ms),
        "putMessageTimesTotal": str(traffic.messages_in),
        "putMessageFailedTimes": str(traffic.refused),
        "putMessageSizeTotal": str(traffic.bytes_in),
        "putMessageAverageSize": str(size),
        "putMessageDistributeTime": traffic.times(),
        "putMessageEntireTimeMax": str(traffic.slowest_ms),
        "getMessageEntireTimeMax": "0",
        "putLatency99": f"{traffic.time_of_part(0.99):.2f}",
        "putLatency999": f"{traffic.time_of_part(0.999):.2f}",
        "msgPutTotalYesterdayMorning": str(put_yesterday),
        "msgPutTotalTodayMorning": str(put_today),
        "msgPutTotalTodayNow": str(traffic.messages_in),
        "msgGetTotalYesterdayMorning": str(get_yesterday),
        "msgGetTotalTodayMorning": str(get_today),
        "msgGetTotalTodayNow": str(traffic.messages_out),
        "putTps": _three(rates["in"]),
        "getFoundTps": _three(rates["found"]),
        "getMissTps": _three(rates["missed"]),
        "getTotalTps": _three(total),
        "getTransferredTps": transferred,
        "getTransferedTps": transferred,  # as 4.9 spells it; its tools fail without
    }


def _store(state: BrokerState) -> dict[str, str]:
    store = state.store
    log = store.log
    used = 1 - store.disk.free_ratio()
    capacity = "everything is in memory"
    if store.path is not None:
        disk = shutil.disk_usage(store.path)
        capacity = f"Total : {_readable(disk.total)}, Free : {_readable(disk.free)}."
    return {
        "commitLogMinOffset": str(log.first),
        "commitLogMaxOffset": str(log.tail),
        "commitLogDiskRatio": str(used),
        "consumeQueueDiskRatio": str(used),
        "commitLogDirCapacity": capacity,
        "earliestMessageTimeStamp": str(earliest_time(state)),
        "startAcceptSendRequestTimeStamp": "0",
        "dispatchMaxBuffer": "0",
        "dispatchBehindBytes": "0",
        "pageCacheLockTimeMills": "0",
        "remainTransientStoreBufferNumbs": "0",
        "remainHowManyDataToFlush": _readable(log.tail - log.synced),
    }


def earliest_time(state: BrokerState) -> int:
    """Return when the oldest message of the log was stored; -1 if there is none."""
    found, _ = state.store.walk(state.store.log.first, 1)
    return found[0][4] if found else -1


def _waiting(state: BrokerState) -> dict[str, str]:
    """Return figures of messages that wait: by delay level, and timed ones."""
    figures = {}
    for level, offset in sorted(state.delay_progress.offsets.items()):
        queue = state.store.queue(SCHEDULE_TOPIC, level - 1)
        end = 0 if queue is None else queue.next_offset
        figures[f"scheduleMessageOffset_{level}"] = f"{offset},{end}"
    timed = state.timed
    late_ms = 0 if timed is None else timed.late_ms(state.clock.now_ms())
    return figures | {
        "timerReadBehind": str(late_ms // 1000),
        "timerOffsetBehind": str(0 if timed is None else timed.not_taken),
        "timerCongestNum": str(0 if timed is None else timed.wheel.count),
        "timerEnqueueTps": "0.0",
        "timerDequeueTps": "0.0",
    }


def _three(rates: tuple[float, ...]) -> str:
    return " ".join(str(rate) for rate in rates)


def _readable(size: int) -> str:
    """Show a number of bytes as Java does."""
    power = 0
    while size >> (10 * (power + 1)) and power < len(_UNITS):
        power += 1
    if not power:
        return f"{size} B"
    return f"{size / (1 << (10 * power)):.1f} {_UNITS[power - 1]}iB"


def _span(milliseconds: int) -> str:
    minutes, seconds = divmod(max(milliseconds, 0) // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


def topic(
    state: BrokerState, _: Connection, request: Command, header: topics.GetTopicStatsRequest
) -> Command:
    """Return the bounds of a topic's queues here, and when the last message of each was stored."""
    name = header.topic
    config = state.topics.get(name)
    if config is None:
        return request.reply(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
    ids = range(max(config.read_queue_nums, config.write_queue_nums))
    broker = state.config.broker_name
    table = {MessageQueue(name, broker, number): _held(state, name, number) for number in ids}
    body = stats.TopicStatsBody(offset_table=table, topic_put_tps=state.stats.stored_rate(name))
    return request.reply(ResponseCode.SUCCESS, None, None, encode_body(body))


def _held(state: BrokerState, name: str, number: int) -> stats.OffsetRange:
    queue = state.store.queue(name, number)
    if queue is None or queue.next_offset == 0:
        return stats.OffsetRange()
    return stats.OffsetRange(
        min_offset=queue.min_offset,
        max_offset=queue.next_offset,
        last_update_timestamp=state.store.store_time(queue, queue.next_offset - 1),
    )


def view(
    state: BrokerState, _: Connection, request: Command, header: stats.ViewBrokerStatsRequest
) -> Command:
    """Return sums and rates of one statistic over the last minute, hour and day."""
    found = state.stats.view(header.stats_name, header.stats_key)
    if found is None:
        remark = f"The stats <{header.stats_name}> <{header.stats_key}> not exist"
        return request.reply(ResponseCode.SYSTEM_ERROR, remark)
    return request.reply(ResponseCode.SUCCESS, body=encode_body(found))


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.GET_BROKER_RUNTIME_INFO: runtime_info,
    RequestCode.GET_TOPIC_STATS_INFO: topic,
    RequestCode.VIEW_BROKER_STATS_DATA: view,
}
