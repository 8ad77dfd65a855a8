"""Ending transactions (37), and resuming checks of discarded ones (323).

Owns Java's checks, codes and words. UNKNOWN gets no response; the broker checks back later.
"""

import msgspec

from pocketmq import native
from pocketmq.broker.core.answers import done, success
from pocketmq.broker.metrics.measures import Measures
from pocketmq.broker.state import Answer, AnyHandler, BrokerState
from pocketmq.broker.transactions.half_messages import HalfMessages
from pocketmq.broker.transactions.half_states import COMMITTED, MOST_CHECKS, OPEN, ROLLED_BACK
from pocketmq.broker.transactions.rules import comes_too_late, committed, prepare
from pocketmq.broker.transactions.usual_commits import PackedEnding, usual_commit
from pocketmq.broker.writing.appending import place
from pocketmq.broker.writing.drafts import Draft
from pocketmq.errors import InvalidInput, ResponseCode, server_error
from pocketmq.model import TransactionState, property_names
from pocketmq.model.names import DISCARDED_HALF_TOPIC
from pocketmq.net import Connection
from pocketmq.protocol import ONEWAY_FLAG, Command, RecordView, RequestCode
from pocketmq.protocol.header import Int32
from pocketmq.protocol.header_json import REFUSALS
from pocketmq.protocol.hosts import V4_SIZE
from pocketmq.protocol.message_ids import parse_offset_id
from pocketmq.protocol.property_text import decode_properties, find_property
from pocketmq.protocol.requests.sending import EndTransactionRequest, ResumeCheckHalfMessageRequest
from pocketmq.store import QueueIndex

_STATES = {int(TransactionState.COMMIT): COMMITTED, int(TransactionState.ROLLBACK): ROLLED_BACK}
_GROUP = property_names.PRODUCER_GROUP.encode()
_NOT_FOUND = "Find prepared transaction message failed"
_OTHER_OUTCOME = "the transaction already ended with another outcome"


def end(
    state: BrokerState, connection: Connection, request: Command, header: EndTransactionRequest
) -> Answer:
    """Commit or roll back."""
    if header.commit_or_rollback not in _STATES:  # UNKNOWN, or nothing that Java answers
        return None
    outcome = carry_out(state, header)
    if isinstance(outcome, ResponseCode):
        return request.reply(outcome)
    queue, size = outcome
    state.batch.appended(queue, 1, size)
    if not request.flag & ONEWAY_FLAG:
        state.batch.answer_stored(connection, request, success(request), wait=False)
    return None


def carry_out(
    state: BrokerState, header: EndTransactionRequest
) -> ResponseCode | tuple[QueueIndex, int]:
    """Commit or roll back; return the queue that got a message for it, and the size of its body.

    The response waits until that is written. Returns the response's code if there is nothing to
    wait for. Raises `ServerError` and `StoreError`.
    """
    wanted = _STATES[header.commit_or_rollback]
    halves, position = state.halves, header.commit_log_offset
    half = None if halves is None else halves.at(position, header.tran_state_table_offset)
    if halves is None or half is None:
        raise server_error(ResponseCode.SYSTEM_ERROR, _NOT_FOUND)
    now_ms, offset = state.batch.now_ms, half.queue_offset
    if wanted == COMMITTED and header.tran_state_table_offset == offset:
        ending = _usual(state, halves, half, header)
        if ending is not None:
            return halves.end(half, wanted, ending, now_ms), half.body_size
    text = half.property_bytes
    if not header.from_transaction_check and comes_too_late(
        half, text, now_ms, state.config.transaction_time_out
    ):
        return ResponseCode.ILLEGAL_OPERATION
    _check(text, offset, header)
    known = halves.state(offset)
    if known is None or known > MOST_CHECKS:
        if known != wanted:
            raise server_error(ResponseCode.SYSTEM_ERROR, _OTHER_OUTCOME)
        return ResponseCode.SUCCESS  # ended twice alike: idempotent
    if wanted == COMMITTED:
        message = committed(half, text, known)
        if message is None:
            raise server_error(ResponseCode.SYSTEM_ERROR, _NOT_FOUND)
        appended = halves.end(half, wanted, message, now_ms), half.body_size
    else:
        appended = halves.end(half, wanted, None, now_ms), 0
    if state.measures is not None:
        _measure(state.measures, half, now_ms, committed=wanted == COMMITTED)
    return appended


def _usual(
    state: BrokerState, halves: HalfMessages, half: RecordView, header: EndTransactionRequest
) -> PackedEnding | None:
    """Return what a commit makes of a half message, if that is a usual one; None is decided here.

    Only the core is quicker this way.
    """
    if (
        native.core is None
        or state.measures is not None
        or len(state.store.store_host) != V4_SIZE
        or halves.state(half.queue_offset) != OPEN
    ):
        return None
    group = header.producer_group.encode("utf-8", "replace")
    usual = usual_commit(bytes(half.buffer), group)
    return None if usual is None else PackedEnding(*usual)


def _measure(measures: Measures, half: RecordView, now_ms: int, *, committed: bool) -> None:
    name = find_property(half.property_bytes, property_names.REAL_TOPIC.encode()) or b""
    topic = (name.decode("utf-8", "replace"),)
    if committed:
        measures.committed.add(topic)
        measures.finished.add(topic, max(now_ms - half.born_timestamp_ms, 0) // 1000)
    else:
        measures.rolled_back.add(topic)


def _check(text: bytes, offset: int, header: EndTransactionRequest) -> None:
    group = find_property(text, _GROUP)
    if group != header.producer_group.encode("utf-8", "replace"):
        raise server_error(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
    if offset != header.tran_state_table_offset:
        raise server_error(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")


def resume(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: ResumeCheckHalfMessageRequest,
) -> Answer:
    """Check a discarded transaction again."""
    try:
        position = parse_offset_id(header.msg_id or "").commit_log_offset
    except InvalidInput as error:
        raise server_error(ResponseCode.SYSTEM_ERROR, str(error)) from error
    found = state.store.record_at(position) if position >= 0 else None
    lost = None if found is None else RecordView(found, 0)
    if lost is None or lost.topic_bytes != DISCARDED_HALF_TOPIC.encode():
        raise server_error(ResponseCode.SYSTEM_ERROR, "Put message back to half topic failed")
    properties = decode_properties(lost.property_bytes)
    draft = Draft(
        topic=properties.get(property_names.REAL_TOPIC, ""),
        queue_id=int(properties.get(property_names.REAL_QUEUE_ID, "0")),
        body=lost.stored_body,
        properties=properties,
        flag=lost.flag,
        sys_flag=lost.sys_flag,
        born_timestamp_ms=lost.born_timestamp_ms,
        born_host=lost.born_host_bytes,
        reconsume_times=lost.reconsume_times,
    )
    prepare(draft, state.batch.now_ms)
    place(state, draft, ())
    if not request.flag & ONEWAY_FLAG:
        frame = request.reply(ResponseCode.SUCCESS).encode()
        state.batch.answer_stored(connection, request, frame, wait=False)
    return None


class _End(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A request as it stands in a read."""

    code: Int32
    opaque: Int32
    flag: Int32 = 0
    fields: EndTransactionRequest = msgspec.field(name="extFields")


_read_end = msgspec.json.Decoder(_End, strict=False).decode


def end_at_once(state: BrokerState, connection: Connection, header: bytes, *, alone: bool) -> bool:
    """Commit or roll back what was just begun: what `end` does, with one reading of the header.

    With `alone` there is nothing else to write (see `CommitLogWriter.takes_alone`).
    """
    try:
        request = _read_end(header)
    except REFUSALS:
        return False
    fields, flag = request.fields, request.flag
    if (
        request.code != RequestCode.END_TRANSACTION
        or flag not in (0, ONEWAY_FLAG)
        or fields.from_transaction_check
        or fields.commit_or_rollback not in _STATES
    ):
        return False
    outcome = carry_out(state, fields)
    if isinstance(outcome, ResponseCode):
        return False
    queue, size = outcome
    if alone and flag:
        runs = [(queue, 0, 1, size, 0, 0, 0)]  # what is counted of it
        state.writer.write_alone(connection, runs, b"", state.batch.now_ms)
        return True
    state.batch.appended(queue, 1, size)
    if not flag:
        asked = Command.request(request.code, request.opaque)
        state.batch.answer_stored(connection, asked, done(request.opaque), wait=False)
    return True


HANDLERS: dict[RequestCode, AnyHandler] = {
    RequestCode.END_TRANSACTION: end,
    RequestCode.RESUME_CHECK_HALF_MESSAGE: resume,
}
