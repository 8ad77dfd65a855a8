"""Queries for single messages: by position (33), by key (12), and entries of a queue (321)."""

import asyncio

from pocketmq.broker.core.refusals import refusal
from pocketmq.broker.state import AnyHandler, BrokerState
from pocketmq.errors import MQError, ResponseCode
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.protocol.requests import reading
from pocketmq.store import QueueIndex
from pocketmq.store.inner_batches import MARK

_NOT_FOUND = "can not find message, maybe time range not correct"
_MOST_ENTRIES = 4096
_SLICE = 0.01
"""Seconds the key index may take at once."""
_LARGEST_BODY = 15 * 1024 * 1024
"""Clients take frames up to 16 MiB; messages that would make one larger are left out."""


def view(
    state: BrokerState, _: Connection, request: Command, header: reading.ViewMessageRequest
) -> Command:
    """Answer with the message at a position of the commit log."""
    offset = header.offset
    record = state.store.record_at(offset) if offset >= 0 else None
    if record is None:
        return request.reply(
            ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}"
        )
    return request.reply(ResponseCode.SUCCESS, body=record)


def query(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: reading.QueryMessageRequest,
) -> Command | None:
    """Answer with the latest messages of a topic with a key, as many as Java would.

    The key index may be far behind after many sends. Then it catches up in slices, between which
    other requests are served.
    """
    if state.store.keys.catch_up(_SLICE):
        return _find(state, request, header)

    def go_on() -> None:
        if connection.closed:
            return
        try:
            if not state.store.keys.catch_up(_SLICE):
                asyncio.get_running_loop().call_soon(go_on)
                return
            answer = _find(state, request, header)
        except MQError as error:
            answer = refusal(request, error)
        connection.write(answer.encode())

    asyncio.get_running_loop().call_soon(go_on)
    return None


def _find(state: BrokerState, request: Command, header: reading.QueryMessageRequest) -> Command:
    config = state.config
    limit = config.default_query_max_num if header.unique_key_query else header.max_num
    limit = min(limit, config.max_msgs_num_batch)
    records: list[bytes] = []
    if limit > 0:
        records = state.store.find_by_key(
            header.topic,
            header.key,
            header.begin_timestamp,
            header.end_timestamp,
            limit,
            unique=bool(header.unique_key_query),
        )
    if not records:
        nowhere = reading.QueryMessageResponse(
            index_last_update_timestamp=0, index_last_update_phyoffset=0
        )
        return request.reply(ResponseCode.QUERY_NOT_FOUND, _NOT_FOUND, nowhere)
    found = reading.QueryMessageResponse(
        index_last_update_timestamp=state.clock.now_ms(),
        index_last_update_phyoffset=state.store.log.tail,
    )
    return request.reply(ResponseCode.SUCCESS, None, found, _joined(records))


def _joined(records: list[bytes]) -> bytes:
    size = 0
    fitting: list[bytes] = []
    for record in records:
        size += len(record)
        if size > _LARGEST_BODY and fitting:
            break
        fitting.append(record)
    return b"".join(fitting)


def look_at_queue(
    state: BrokerState, _: Connection, request: Command, header: reading.QueryConsumeQueueRequest
) -> Command:
    """Show entries of a queue, and which of them a group's tags let through."""
    topic, group = header.topic or "", header.consumer_group or ""
    queue = state.store.queue(topic, header.queue_id)
    if queue is None:
        remark = f"{header.queue_id}@{topic} is not exist!"
        return request.reply(ResponseCode.SYSTEM_ERROR, remark)
    known = state.consumers.subscription(group, topic)
    start, count = max(header.index, 0), min(max(header.count, 0), _MOST_ENTRIES)
    entries = _entries(queue, start, count)
    page = reading.ConsumeQueuePage(
        subscription_data=None if known is None else known.subscription,
        filter_data=f"{group}@{topic} is not online!" if known is None else "null",
        queue_data=[
            reading.ConsumeQueueEntry(
                physic_offset=position,
                physic_size=size,
                tags_code=tag,
                eval=known is not None and known.tags.matches_code(tag),
            )
            for position, size, tag in entries
        ],
        max_queue_index=queue.next_offset,
        min_queue_index=queue.min_offset,
    )
    return request.reply(ResponseCode.SUCCESS, "not set any response code", None, encode_body(page))


def _entries(queue: QueueIndex, start: int, count: int) -> list[tuple[int, int, int]]:
    """Return position, size and tag code of entries; an inner batch is one, as in Java."""
    positions, sizes = queue.entries(start, count)
    found: list[tuple[int, int, int]] = []
    for position, size, tag in zip(positions, sizes, queue.tags(start, count), strict=True):
        if not size & MARK:
            found.append((position, size, tag))
        elif not found or found[-1][0] != position:
            found.append((position, size & ~MARK, tag))
    return found


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.VIEW_MESSAGE_BY_ID: view,
    RequestCode.QUERY_MESSAGE: query,
    RequestCode.QUERY_CONSUME_QUEUE: look_at_queue,
}
