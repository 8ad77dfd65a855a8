"""Requests about timed messages: recall one (370), delivery progress (60), counts by topic (61).

Owns Java's checks, codes and words.
"""

import asyncio

from pocketmq.broker.core.refusals import refusal
from pocketmq.broker.state import Answer, AnyHandler, BrokerState
from pocketmq.broker.timers.queue import TimerQueue
from pocketmq.broker.writing.appending import place
from pocketmq.broker.writing.drafts import Draft, born_host
from pocketmq.errors import HeaderMalformed, MQError, ResponseCode, server_error
from pocketmq.model import DataVersion, property_names
from pocketmq.net import Connection
from pocketmq.protocol import ONEWAY_FLAG, Command, RequestCode, encode_body
from pocketmq.protocol.handles import RecallHandle
from pocketmq.protocol.requests import broker_admin, sending

_TAG = "_RECALL_TAG_"


def recall(
    state: BrokerState, connection: Connection, request: Command, header: sending.RecallRequest
) -> Answer:
    """Recall a message; whether there is one is not checked, as in RocketMQ."""
    now_ms = state.batch.now_ms
    handle = _checked(state, header, now_ms)
    draft = Draft(
        topic=handle.topic,
        queue_id=0,
        body=b"0",
        properties={
            property_names.TAGS: _TAG,
            property_names.TIMER_DELETE_UNIQUE_KEY: f"{handle.topic}+{handle.message_id}",
            property_names.UNIQUE_KEY: handle.message_id,
            property_names.TIMER_DELIVER_MS: str(handle.deliver_at_ms),
            property_names.BORN_TIMESTAMP: str(now_ms),
            property_names.PRODUCER_GROUP: header.producer_group or "",
        },
        flag=0,
        sys_flag=0,
        born_timestamp_ms=now_ms,
        born_host=born_host(connection),
    )
    place(state, draft)
    if not request.flag & ONEWAY_FLAG:
        answer = sending.RecallResponse(msg_id=handle.message_id, region=state.config.region_id)
        frame = request.reply(ResponseCode.SUCCESS, None, answer).encode()
        state.batch.answer_stored(connection, request, frame)
    return None


def _checked(state: BrokerState, header: sending.RecallRequest, now_ms: int) -> RecallHandle:
    config = state.config
    if not config.recall_message_enable:
        raise server_error(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
    if state.topics.get(header.topic) is None:
        raise server_error(
            ResponseCode.TOPIC_NOT_EXIST, f"recall failed, the topic[{header.topic}] not exist"
        )
    try:
        handle = RecallHandle.parse(header.recall_handle)
    except HeaderMalformed as error:
        raise server_error(ResponseCode.ILLEGAL_OPERATION, "recall handle is invalid") from error
    if handle.topic != header.topic:
        raise server_error(ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match")
    if handle.broker_name != config.broker_name:
        raise server_error(
            ResponseCode.ILLEGAL_OPERATION, "recall failed, broker service not available"
        )
    left_ms = handle.deliver_at_ms - now_ms
    if not 0 < left_ms <= config.timer_max_delay_sec * 1000:
        raise server_error(ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid")
    return handle


_AT_ONCE = 1000
"""Messages that are counted before other requests are served."""


def checkpoint(state: BrokerState, _: Connection, request: Command) -> Command:
    """Return how far timed messages were taken in and delivered."""
    timed = _timed(state, "The checkpoint is null")
    body = broker_admin.encode_timer_checkpoint(
        broker_admin.TimerCheckpoint(
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
    state.writer.write_now()
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
    metrics = broker_admin.TimerMetrics(
        timing_count={
            topic: broker_admin.TimerMetric(count=count, time_stamp=now_ms)
            for topic, count in sorted(counts.items())
        },
        data_version=DataVersion(timestamp=state.booted_ms),
    )
    return request.reply(ResponseCode.SUCCESS, body=encode_body(metrics))


def _timed(state: BrokerState, otherwise: str) -> TimerQueue:
    if state.timed is None or not state.config.timer_wheel_enable:
        raise server_error(ResponseCode.SYSTEM_ERROR, otherwise)
    return state.timed


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.RECALL_MESSAGE: recall,
    RequestCode.GET_TIMER_CHECK_POINT: checkpoint,
    RequestCode.GET_TIMER_METRICS: waiting,
}
