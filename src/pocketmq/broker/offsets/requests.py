"""Offsets: a group's progress (14, 15, 43) and the bounds of queues (29 to 32)."""

from collections.abc import Mapping
from typing import Any

from pocketmq.broker.state import AnyHandler, BrokerState
from pocketmq.broker.topics.table import MAX_QUEUES
from pocketmq.errors import HeaderMalformed, ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.protocol.header import EmptyResponse
from pocketmq.protocol.requests import offsets as rows

_NOT_FOUND = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
_NOT_WANTED = "Not found, do not set to zero, maybe this group boot first"


def update(state: BrokerState, _: Connection, request: Command) -> Command | None:
    """Commit a group's offset in a queue. Clients commit one-way, thousands a second."""
    try:
        header = request.header(rows.UpdateConsumerOffsetRequest)
    except HeaderMalformed:
        return _refuse_update(state, request)
    group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
    if group not in state.groups.entries or topic not in state.topics.entries:
        return _refuse_update(state, request)
    if not 0 <= queue_id < MAX_QUEUES:
        remark = f"QueueId {queue_id} is illegal, topic is {topic}"
        return request.reply(ResponseCode.INVALID_PARAMETER, remark, EmptyResponse())
    offsets = state.offsets
    if state.config.use_server_side_reset_offset and offsets.has_reset(group, topic, queue_id):
        remark = "Offset has been previously reset"
        return request.reply(ResponseCode.SUCCESS, remark, EmptyResponse())
    offsets.commit(group, topic, queue_id, header.commit_offset)
    if request.is_oneway:
        return None
    return request.reply(ResponseCode.SUCCESS, None, EmptyResponse())


def _refuse_update(state: BrokerState, request: Command) -> Command:
    """Return what is wrong with a commit, checking in Java's order."""
    ext = request.ext
    group, topic = ext.get("consumerGroup"), ext.get("topic")
    code = ResponseCode.INVALID_PARAMETER
    if group is None or group not in state.groups:
        code = ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        remark = f"Group {'null' if group is None else group} not exist!"
    elif topic is None or topic not in state.topics:
        code = ResponseCode.TOPIC_NOT_EXIST
        remark = f"Topic {'null' if topic is None else topic} not exist!"
    elif "queueId" not in ext:
        remark = f"QueueId is null, topic is {topic}"
    else:
        remark = f"Offset is null, topic is {topic}"
    return request.reply(code, remark, EmptyResponse())


def query(state: BrokerState, _: Connection, request: Command) -> Command:
    """Answer with a group's committed offset in a queue.

    A group without any begins at 0 where the first message is still there, so a consumer that
    starts at the end reads a young topic from its first message, as with Java.
    """
    # Java accepts a missing group, which has no offset.
    header = rows.QueryConsumerOffsetRequest.from_ext({"consumerGroup": ""} | request.ext)
    topic, queue_id = header.topic, header.queue_id
    offset = state.offsets.query(header.consumer_group, topic, queue_id)
    if offset is None or offset < 0:
        if header.set_zero_if_not_found is False:
            return request.reply(ResponseCode.QUERY_NOT_FOUND, _NOT_WANTED, EmptyResponse())
        queue = state.store.queue(topic, queue_id)
        if queue is None or queue.min_offset > 0 or queue.next_offset == 0:
            return request.reply(ResponseCode.QUERY_NOT_FOUND, _NOT_FOUND, EmptyResponse())
        offset = 0
    return request.reply(
        ResponseCode.SUCCESS, None, rows.QueryConsumerOffsetResponse(offset=offset)
    )


def search(
    state: BrokerState, _: Connection, request: Command, header: rows.SearchOffsetRequest
) -> Command:
    """Find the first message at or after a time, or with UPPER the last at or before it."""
    queue = state.store.queue(header.topic, header.queue_id)
    upper = (header.boundary_type or "").upper() == "UPPER"
    offset = 0
    if queue is not None:
        offset = state.store.offset_by_time(queue, header.timestamp, upper=upper)
    return request.reply(ResponseCode.SUCCESS, None, rows.SearchOffsetResponse(offset=offset))


def maximum(
    state: BrokerState, _: Connection, request: Command, header: rows.GetMaxOffsetRequest
) -> Command:
    """Return the offset of the next message to come; 0 for a queue that was never used."""
    queue = state.store.queue(header.topic, header.queue_id)
    offset = 0 if queue is None else queue.next_offset
    return request.reply(ResponseCode.SUCCESS, None, rows.GetMaxOffsetResponse(offset=offset))


def minimum(
    state: BrokerState, _: Connection, request: Command, header: rows.GetMinOffsetRequest
) -> Command:
    """Return the first offset a queue still holds."""
    queue = state.store.queue(header.topic, header.queue_id)
    offset = queue.min_offset if queue is not None and queue.next_offset else 0
    return request.reply(ResponseCode.SUCCESS, "", rows.GetMinOffsetResponse(offset=offset))


def earliest(
    state: BrokerState, _: Connection, request: Command, header: rows.GetEarliestStoreTimeRequest
) -> Command:
    """Return when the first message a queue still holds was stored; -1 if there is none."""
    queue = state.store.queue(header.topic, header.queue_id)
    moment = -1 if queue is None else state.store.earliest_time(queue)
    return request.reply(
        ResponseCode.SUCCESS, None, rows.GetEarliestStoreTimeResponse(timestamp=moment)
    )


def everything(state: BrokerState, _: Connection, request: Command) -> Command:
    """Return all offsets, as a slave would copy them."""
    offsets = state.offsets
    extra: dict[str, Any] = {
        "groupTopicMap": _topics_by_group(offsets.committed),
        "pullOffsetTable": _joined(offsets.pulled),
    }
    body = rows.ConsumerOffsets(
        offset_table=_joined(offsets.committed),
        data_version=offsets.version(state.clock.now_ms()),
        extra=extra,
    )
    return request.reply(ResponseCode.SUCCESS, None, None, encode_body(body))


def _joined(table: Mapping[tuple[str, str], dict[int, int]]) -> dict[str, dict[int, int]]:
    return {f"{topic}@{group}": offsets for (topic, group), offsets in table.items()}


def _topics_by_group(pairs: Mapping[tuple[str, str], object]) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for topic, group in pairs:
        result.setdefault(group, []).append(topic)
    return result


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.UPDATE_CONSUMER_OFFSET: update,
    RequestCode.QUERY_CONSUMER_OFFSET: query,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: search,
    RequestCode.GET_MAX_OFFSET: maximum,
    RequestCode.GET_MIN_OFFSET: minimum,
    RequestCode.GET_EARLIEST_MSG_STORETIME: earliest,
    RequestCode.GET_ALL_CONSUMER_OFFSET: everything,
}
