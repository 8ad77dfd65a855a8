"""Messages that wait for a moment: how far the broker is (60), and how many by topic (61)."""

import asyncio

from pocketmq.broker.core.refusals import refusal
from pocketmq.broker.state import BrokerState, Handler
from pocketmq.broker.timers.queue import TimerQueue
from pocketmq.errors import MQError, ResponseCode, server_error
from pocketmq.model.data_version import DataVersion
from pocketmq.net import Connection
from pocketmq.protocol.bodies.timer import (
    TimerCheckpoint,
    TimerMetric,
    TimerMetrics,
    encode_timer_checkpoint,
)
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.json_values import encode_body

_AT_ONCE = 1000
"""Messages that are looked at before others have their turn."""


def checkpoint(state: BrokerState, _: Connection, request: Command) -> Command:
    """Give how far timed messages were taken in and delivered."""
    timed = _timed(state, "The checkpoint is null")
    body = encode_timer_checkpoint(
        TimerCheckpoint(
            last_read_time_ms=timed.done[0],
            last_timer_log_flush_pos=timed.saved_position,
            last_timer_queue_offset=timed.taken,
            master_timer_queue_offset=timed.taken,
            data_version=DataVersion(timestamp=state.booted_ms),
        )
    )
    return request.reply(ResponseCode.SUCCESS, body=body)


def waiting(state: BrokerState, connection: Connection, request: Command) -> None:
    """Count the messages that wait, by topic. There may be millions: others are served between."""
    timed = _timed(state, "The timer message store is null")
    state.writer.end_turn()
    timed.take_in()
    entries = timed.wheel.before(1 << 62)
    counts: dict[str, int] = {}

    def go_on(start: int) -> None:
        if connection.closed:
            return
        try:
            for topic, count in timed.by_topic(entries[start : start + _AT_ONCE]).items():
                counts[topic] = counts.get(topic, 0) + count
        except MQError as error:
            connection.write(refusal(request, error).encode())
            return
        if start + _AT_ONCE < len(entries):
            asyncio.get_running_loop().call_soon(lambda: go_on(start + _AT_ONCE))
        else:
            connection.write(_counted(state, request, counts).encode())

    go_on(0)


def _counted(state: BrokerState, request: Command, counts: dict[str, int]) -> Command:
    now_ms = state.clock.now_ms()
    metrics = TimerMetrics(
        timing_count={
            topic: TimerMetric(count=count, time_stamp=now_ms)
            for topic, count in sorted(counts.items())
        },
        data_version=DataVersion(timestamp=state.booted_ms),
    )
    return request.reply(ResponseCode.SUCCESS, body=encode_body(metrics))


def _timed(state: BrokerState, otherwise: str) -> TimerQueue:
    if state.timed is None or not state.config.timer_wheel_enable:
        raise server_error(ResponseCode.SYSTEM_ERROR, otherwise)
    return state.timed


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.GET_TIMER_CHECK_POINT: checkpoint,
    RequestCode.GET_TIMER_METRICS: waiting,
}
