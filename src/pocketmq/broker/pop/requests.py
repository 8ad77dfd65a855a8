"""Popping: taking messages (200050), acknowledging them (200051, 200151), hiding them for longer.

With Java's checks, codes and texts (5.x). A pop that finds nothing may wait, and so may a
notification (200054). Acknowledgements are answered once they are written to the journal.
"""

from collections.abc import Iterable

from pocketmq.broker.core.answers import success
from pocketmq.broker.pop import answers
from pocketmq.broker.pop.changes import VisibilityChanged
from pocketmq.broker.pop.in_flight import OrderedAckRefusal
from pocketmq.broker.pop.pops import Pops
from pocketmq.broker.pop.sources import LATE_MS, checked, checked_place, too_late
from pocketmq.broker.pop.table import LATEST_MS
from pocketmq.broker.pop.waiting import HeldPop
from pocketmq.broker.pulling.selection import EVERYTHING, Selection, carried_selection
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.errors import HeaderMalformed, ResponseCode, ServerError, server_error
from pocketmq.net import Connection
from pocketmq.protocol import ONEWAY_FLAG, Command, RequestCode, decode_body
from pocketmq.protocol.handles import ORDERED_REVIVE_QUEUE, PopHandle, TopicMark
from pocketmq.protocol.header import Header
from pocketmq.protocol.requests import pop as rows

_EARLY_MS = 50
"""How long before its end a pop is answered, so that the answer is there in time."""
_LONGEST_WAIT_MS = 3_600_000


def pop(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Take messages, or wait for them."""
    header = request.header(rows.PopRequest)
    now_ms = state.batch.now_ms
    born_ms = header.born_time or now_ms
    if now_ms - born_ms - header.poll_time > LATE_MS:
        raise too_late(state)
    pops = _pops(state)
    source = pops.sources.find(connection, header)
    selection = carried(state, header)
    batch = pops.take(source, header, selection)
    if batch.count:
        connection.write(*answers.pop_answer(request.opaque, header, now_ms, batch))
        if state.measures is not None:
            state.measures.answered(request.code, ResponseCode.SUCCESS, state.steady())
        return None
    state.traffic.pulls_missed += 1
    wait_ms = _wait_ms(born_ms, header.poll_time, now_ms)
    code = ResponseCode.POLLING_TIMEOUT
    if wait_ms > 0:
        held = HeldPop(connection, request, header, selection)
        # A group with too many in flight would wait for its own acknowledgements: it retries later.
        if not batch.stopped and pops.hold(held, wait_ms / 1000, unfinished=batch.unfinished):
            return None
        code = ResponseCode.POLLING_FULL
    return answers.nothing_popped(request, code, header, now_ms, batch.rest)


def notify(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Return whether there is something to take, once there is."""
    header = request.header(rows.NotificationRequest)
    checked(state, connection, header)
    pops, now_ms = _pops(state), state.batch.now_ms
    if pops.available(header):
        return answers.notified(request, found=True)
    wait_ms = _wait_ms(header.born_time or now_ms, header.poll_time, now_ms)
    if wait_ms <= 0:
        return answers.notified(request, found=False)
    if pops.hold(HeldPop(connection, request, header, EVERYTHING), wait_ms / 1000):
        return None
    return answers.notified(request, found=False, full=True)


def acknowledge(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Acknowledge one message."""
    settle_one(state, connection, request.header(rows.AckRequest))
    return _answered_later(state, connection, request)


def settle_one(
    state: BrokerState, connection: Connection, header: rows.AckRequest, *, later: bool = False
) -> None:
    """Settle an acknowledged message. Raises `ServerError`; nothing has changed then.

    `later` is that of `PopTable.settle`.
    """
    low, high = checked_place(state, connection, header)
    topic, group, queue_id, offset = (
        header.topic, header.consumer_group, header.queue_id, header.offset,
    )  # fmt: skip
    if not low <= offset <= high:
        raise server_error(
            ResponseCode.NO_MESSAGE,
            f"offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{low}~{high}",
        )
    pop_time_ms, revive_queue_id = _read_handle(header.extra_info)
    if revive_queue_id == ORDERED_REVIVE_QUEUE:
        _acknowledge_ordered(state, connection, (topic, group, queue_id), pop_time_ms, offset)
    else:
        table = _pops(state).table
        if table.settle(topic, group, queue_id, pop_time_ms, (offset,), later=later):
            state.batch.notes += 1


def acknowledge_several(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Acknowledge messages of several pops."""
    acks = decode_body(request.body, rows.BatchAcks).acks if request.body else []
    if not acks:
        return request.reply(ResponseCode.NO_MESSAGE)
    settle_several(state, connection, acks)
    return _answered_later(state, connection, request)


_NORMAL = TopicMark.NORMAL.value


def settle_several(
    state: BrokerState, connection: Connection, acks: Iterable[rows.BatchAck]
) -> None:
    """Settle acknowledged messages; raises the `ServerError` of the last that is refused."""
    refused: ServerError | None = None
    for ack in acks:
        try:
            _acknowledge_batch(state, connection, ack)
        except ServerError as error:  # as in Java the others count all the same
            refused = error
    if refused is not None:
        raise refused


def _acknowledge_batch(state: BrokerState, connection: Connection, ack: rows.BatchAck) -> None:
    topic, group, queue_id = ack.topic, ack.consumer_group, ack.queue_id
    if ack.retry and ack.retry != _NORMAL:
        try:
            topic = TopicMark(ack.retry).real_topic(topic, group)
        except ValueError:
            raise HeaderMalformed(f"{ack.retry!r} is not the mark of a topic") from None
    offsets = ack.acked_offsets()
    if ack.revive_queue_id == ORDERED_REVIVE_QUEUE:
        for offset in offsets:
            _acknowledge_ordered(state, connection, (topic, group, queue_id), ack.pop_time, offset)
    elif _pops(state).table.settle(topic, group, queue_id, ack.pop_time, offsets):
        state.batch.notes += 1


def _acknowledge_ordered(
    state: BrokerState,
    connection: Connection,
    place: tuple[str, str, int],
    pop_time_ms: int,
    offset: int,
) -> None:
    topic, group, queue_id = place
    pops, now_ms = _pops(state), state.batch.now_ms
    committed = state.offsets.query(group, topic, queue_id) or 0
    locked = pops.table.locked(topic, group, queue_id)
    if offset < committed or locked is None:
        return  # it was done with before
    verdict = pops.table.ack_ordered(locked, offset, pop_time_ms, now_ms)
    if verdict is OrderedAckRefusal.UNKNOWN:
        raise server_error(
            ResponseCode.MESSAGE_ILLEGAL,
            f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{committed}, "
            f"commit:{offset}, next:-1, /{connection.remote_address}",
        )
    if verdict is None:
        state.batch.notes += 1
        if not locked.pop.is_blocked(None, now_ms):
            pops.unlocked(topic, group, queue_id)


def change_invisible(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Hide a message for `invisibleTime` from now on; it gets a new handle."""
    header = request.header(rows.ChangeInvisibleTimeRequest)
    low, high = checked_place(state, connection, header)
    topic, group, queue_id, offset = (
        header.topic, header.consumer_group, header.queue_id, header.offset,
    )  # fmt: skip
    if not low <= offset < high:
        raise server_error(ResponseCode.NO_MESSAGE, answers.UNSET)
    handle = PopHandle.parse(header.extra_info)
    now_ms, table = state.batch.now_ms, _pops(state).table
    until_ms = now_ms + min(header.invisible_time, LATEST_MS)
    if handle.is_ordered:
        locked = table.locked(topic, group, queue_id)
        if locked and table.change_ordered(locked, offset, handle.pop_time_ms, until_ms, now_ms):
            state.batch.notes += 1
            if not locked.pop.is_blocked(None, now_ms):
                _pops(state).unlocked(topic, group, queue_id)
        pop_time_ms, invisible_ms = handle.pop_time_ms, until_ms - handle.pop_time_ms
    else:
        pop_time_ms, invisible_ms = now_ms, header.invisible_time
        changed = VisibilityChanged(
            topic, group, queue_id, offset, handle.pop_time_ms, pop_time_ms, until_ms
        )
        if table.change(changed):
            state.batch.notes += 1
    answer = rows.ChangeInvisibleTimeResponse(
        pop_time=pop_time_ms, invisible_time=invisible_ms, revive_qid=handle.revive_queue_id
    )
    return _answered_later(state, connection, request, answer)


def peek(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Show messages without taking them."""
    header = request.header(rows.PeekRequest)
    topic = checked(state, connection, header)
    connection.write(*answers.peeked(state, _pops(state).table, request, header, topic))
    if state.measures is not None:
        state.measures.answered(request.code, ResponseCode.SUCCESS, state.steady())
    return None


def polling_info(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Return how many pops wait for a queue."""
    header = request.header(rows.PollingInfoRequest)
    del connection
    waiting = _pops(state).waiting_for(header.topic, header.consumer_group, header.queue_id)
    return request.reply(
        ResponseCode.SUCCESS, answers.UNSET, rows.PollingInfoResponse(polling_num=waiting)
    )


def _read_handle(text: str) -> tuple[int, int]:
    """Return when a message was popped and its revive queue; raises `HeaderMalformed`.

    Acknowledgements are many: of a handle that looks right no more is read.
    """
    parts = text.split(" ")
    if len(parts) > 6 and parts[1].isdecimal() and parts[3].isdecimal() and len(text) < 1024:
        return int(parts[1]), int(parts[3])
    handle = PopHandle.parse(text)
    return handle.pop_time_ms, handle.revive_queue_id


def _pops(state: BrokerState) -> Pops:
    if not isinstance(state.pops, Pops):
        raise server_error(ResponseCode.SERVICE_NOT_AVAILABLE, "pops are not served yet")
    return state.pops


def carried(state: BrokerState, header: rows.PopRequest) -> Selection:
    """Return which messages a pop wants. Raises `ServerError`."""
    if not header.exp or (header.exp == "*" and header.exp_type in (None, "TAG")):
        return EVERYTHING
    selection = carried_selection(header.topic, header.exp, header.exp_type)
    if not selection.by_tag and not state.config.enable_property_filter:
        raise server_error(
            ResponseCode.SYSTEM_ERROR,
            f"The broker does not support consumer to filter message by {selection.kind}",
        )
    return selection


def _wait_ms(born_ms: int, poll_ms: int, now_ms: int) -> int:
    """Return how long a request may wait; a client whose clock is ahead gains nothing by it."""
    if poll_ms <= 0:
        return 0
    wait_ms = min(poll_ms, born_ms + poll_ms - now_ms, _LONGEST_WAIT_MS)
    return wait_ms - _EARLY_MS


def _answered_later(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: rows.ChangeInvisibleTimeResponse | None = None,
) -> bytes | None:
    """Answer once what was noted is written; at once if nothing was."""
    if header is None:
        frame = success(request)
    else:
        frame = request.reply(ResponseCode.SUCCESS, answers.UNSET, header).encode()
    if not state.batch.notes:
        return frame
    if not request.flag & ONEWAY_FLAG:
        state.batch.answer_stored(connection, request, frame, wait=False)
    return None


def _refusing(handler: Handler, empty: Header) -> Handler:
    """Let refusals carry an empty header, as in Java: clients read its fields even then."""

    def serve(state: BrokerState, connection: Connection, request: Command) -> Answer:
        try:
            return handler(state, connection, request)
        except ServerError as error:
            return request.reply(error.code, error.remark, empty)

    return serve


_NOT_CHANGED = rows.ChangeInvisibleTimeResponse(pop_time=0, invisible_time=0, revive_qid=0)
HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.POP_MESSAGE: _refusing(pop, answers.NO_POP),
    RequestCode.ACK_MESSAGE: acknowledge,
    RequestCode.BATCH_ACK_MESSAGE: acknowledge_several,
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: _refusing(change_invisible, _NOT_CHANGED),
    RequestCode.NOTIFICATION: _refusing(notify, rows.NotificationResponse(has_msg=False)),
    RequestCode.PEEK_MESSAGE: _refusing(peek, answers.NO_POP),
    RequestCode.POLLING_INFO: polling_info,
}
