"""Offsets of a logical queue: a group's progress (14, 15), the bounds and times (29 to 32).

A logical offset belongs to one range. If that lies on another broker, the question goes there.
Java takes the queue id of the wrong range for the end of a queue that moves, and of none for times;
this takes that of the range.
"""

from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

import msgspec

from pocketmq.balance.static_topics import ranges
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.broker.static_topics.logical import LogicalHandler, LogicalQueue, rewritten
from pocketmq.errors import ResponseCode, ServerError, server_error
from pocketmq.model.topics import MappedRange
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.header import EmptyResponse
from pocketmq.protocol.requests import offsets as rows

_NOT_FOUND = "Not found, maybe this group consumer boot first"
_FAR = 1 << 62
_NOTHING: Mapping[str, object] = {}


class _Asked:
    """A request for a logical queue, asked of the physical queues it consists of."""

    def __init__(
        self,
        state: BrokerState,
        connection: Connection,
        request: Command,
        queue: LogicalQueue,
        plain: Handler,
    ) -> None:
        self._state, self._connection, self._plain = state, connection, plain
        self.request = request
        self.queue = queue

    async def at(
        self,
        part: MappedRange,
        code: RequestCode | None = None,
        fields: Mapping[str, object] = _NOTHING,
    ) -> int:
        """Return the number that a range's broker answers. Raises `ServerError`."""
        there = rewritten(self.request, {"queueId": part.queue_id, **fields})
        there = msgspec.structs.replace(there, flag=0)  # also one-way: this waits for the outcome
        name = part.bname or ""
        if not self.queue.is_here(part):
            asked = RequestCode(self.request.code if code is None else code)
            answer = await self._state.neighbours.ask(self.queue.topic, name, asked, there.ext)
        elif code is None:
            answer = _whole(self._plain(self._state, self._connection, there))
        else:
            answer = _whole(_LOCAL[code](self._state, there))
        if answer.code != ResponseCode.SUCCESS:
            raise server_error(answer.code, answer.remark, request="offset", address=name)
        found = answer.ext.get("offset", answer.ext.get("timestamp", "0"))
        return int(found)

    def first(self) -> MappedRange:
        """Return the oldest range."""
        part = ranges.holding(self.queue.parts, 0)
        return self.queue.leader if part is None else part

    def newest(self) -> MappedRange:
        """Return the newest range whose logical offset is decided."""
        part = ranges.holding(self.queue.parts, _FAR)
        return self.queue.leader if part is None else part


def _whole(answer: Answer) -> Command:
    assert isinstance(answer, Command)  # these requests are answered at once
    return answer


def _end_here(state: BrokerState, request: Command) -> Command:
    queue = state.store.queue(request.ext["topic"], int(request.ext["queueId"]))
    end = 0 if queue is None else queue.next_offset
    return request.reply(ResponseCode.SUCCESS, None, rows.GetMaxOffsetResponse(offset=end))


def _time_here(state: BrokerState, request: Command) -> Command:
    queue = state.store.queue(request.ext["topic"], int(request.ext["queueId"]))
    time = -1 if queue is None else state.store.earliest_time(queue)
    header = rows.GetEarliestStoreTimeResponse(timestamp=time)
    return request.reply(ResponseCode.SUCCESS, None, header)


_LOCAL = {
    RequestCode.GET_MAX_OFFSET: _end_here,
    RequestCode.GET_EARLIEST_MSG_STORETIME: _time_here,
}


async def _commit(asked: _Asked) -> Command:
    """Store a group's offset where the range is."""
    request = asked.request
    header = request.header(rows.UpdateConsumerOffsetRequest)
    part = ranges.holding(asked.queue.parts, header.commit_offset) or asked.queue.leader
    offset = ranges.physical(part, header.commit_offset)
    await asked.at(part, None, {"commitOffset": max(0, offset)})
    return request.reply(ResponseCode.SUCCESS, None, EmptyResponse())


async def _query(asked: _Asked) -> Command:
    """Return a group's offset: of the newest range in which it has one (Java: double read)."""
    request, queue = asked.request, asked.queue
    alone = len(queue.parts) == 1 and queue.leader.logic_offset == 0
    more = {} if alone else {"setZeroIfNotFound": "false"}
    for part in reversed(queue.parts):
        try:
            found = await asked.at(part, None, more)
        except ServerError as error:
            if error.code != ResponseCode.QUERY_NOT_FOUND:
                raise
            remark = error.remark if alone else _NOT_FOUND
            continue
        header = rows.QueryConsumerOffsetResponse(offset=ranges.exactly(part, found))
        return request.reply(ResponseCode.SUCCESS, None, header)
    return request.reply(ResponseCode.QUERY_NOT_FOUND, remark, EmptyResponse())


async def _minimum(asked: _Asked) -> Command:
    part = asked.first()
    header = rows.GetMinOffsetResponse(offset=ranges.shown(part, await asked.at(part)))
    return asked.request.reply(ResponseCode.SUCCESS, None, header)


async def _maximum(asked: _Asked) -> Command:
    part = asked.newest()
    header = rows.GetMaxOffsetResponse(offset=ranges.exactly(part, await asked.at(part)))
    return asked.request.reply(ResponseCode.SUCCESS, None, header)


async def _earliest(asked: _Asked) -> Command:
    header = rows.GetEarliestStoreTimeResponse(timestamp=await asked.at(asked.first()))
    return asked.request.reply(ResponseCode.SUCCESS, None, header)


async def _search(asked: _Asked) -> Command:
    """Find the first message at or after a time, or with UPPER the last at or before it."""
    header = asked.request.header(rows.SearchOffsetRequest)
    decided = [part for part in asked.queue.parts if part.logic_offset >= 0]
    upper = (header.boundary_type or "").upper() == "UPPER"
    chosen = asked.first() if upper else asked.newest()
    for part in reversed(decided) if upper else decided:
        if upper:
            oldest = await asked.at(part, RequestCode.GET_EARLIEST_MSG_STORETIME)
            fits = 0 <= oldest <= header.timestamp
        else:
            found, end = await asked.at(part), await asked.at(part, RequestCode.GET_MAX_OFFSET)
            fits = 0 <= found < end
        if fits:
            chosen = part
            break
    offset = ranges.exactly(chosen, max(0, await asked.at(chosen)))
    answer = rows.SearchOffsetResponse(offset=offset)
    return asked.request.reply(ResponseCode.SUCCESS, None, answer)


_WORK = {
    RequestCode.UPDATE_CONSUMER_OFFSET: _commit,
    RequestCode.QUERY_CONSUMER_OFFSET: _query,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: _search,
    RequestCode.GET_MAX_OFFSET: _maximum,
    RequestCode.GET_MIN_OFFSET: _minimum,
    RequestCode.GET_EARLIEST_MSG_STORETIME: _earliest,
}


def _handle(  # noqa: PLR0917 - what a handler is given
    code: RequestCode,
    state: BrokerState,
    connection: Connection,
    request: Command,
    queue: LogicalQueue,
    plain: Handler,
) -> Answer:
    """Answer at once if all ranges are here, or when other brokers have answered."""
    work = _WORK[code](_Asked(state, connection, request, queue, plain))
    if not all(map(queue.is_here, queue.parts)):
        return state.neighbours.answer_later(connection, request, work)
    answer = _at_once(request, work)
    return None if request.is_oneway else answer


def _at_once(request: Command, work: Coroutine[Any, Any, Command]) -> Command:
    try:
        work.send(None)
    except StopIteration as end:
        answer: Command = end.value
        return answer
    except ServerError as error:
        return request.reply(error.code, error.remark, EmptyResponse())
    raise AssertionError("a question about this broker alone has waited")


def store(state: BrokerState, queue: LogicalQueue, group: str, offset: int) -> None:
    """Commit what a pull carries; other brokers get it with the consumer's own commits."""
    part = ranges.holding(queue.parts, offset)
    if part is not None and queue.is_here(part):
        state.offsets.commit(group, queue.topic, part.queue_id, ranges.physical(part, offset))


LOGICAL: dict[RequestCode, LogicalHandler] = {code: partial(_handle, code) for code in _WORK}
