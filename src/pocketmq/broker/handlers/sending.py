"""Taking messages in: one at a time or in batches, with Java's checks, codes and words (5.x).

A plain message takes the short way: its target is known, its properties are only looked at, and the
answer is a template. Whatever asks for more (retries, delays, transactions) becomes a draft.
"""

from pocketmq.broker.appending import Draft, append, append_batch, message_illegal, place
from pocketmq.broker.born_host import born_host
from pocketmq.broker.dead_letters import give_up_retries
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.broker.targets import Target, find_target
from pocketmq.errors import (
    InvalidInput,
    MessageMalformed,
    ResponseCode,
    ServerError,
    StoreError,
    server_error,
)
from pocketmq.model import properties as names
from pocketmq.model.flags import TRANSACTION_MASK, SysFlag
from pocketmq.model.java_strings import java_hash
from pocketmq.net import Connection
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import ONEWAY_FLAG, Command
from pocketmq.protocol.headers.sending import SendRequest, SendRequestV2
from pocketmq.protocol.property_text import LIMIT, decode_properties, find_property
from pocketmq.protocol.records import Record

OVERLOADED = "[OVERLOAD]system busy, start flow control for a while"
NO_ROOM = (
    "service not available now. It may be caused by one of the following reasons: the broker's "
    "disk is full, messages are put to the slave, message store has been shut down, etc."
)

_UNIQUE_KEY = b"UNIQ_KEY\1"
_TAGS = b"TAGS\1"
_NOT_WAITING = "WAIT\1false"
_NOT_PLAIN = TRANSACTION_MASK | int(SysFlag.INNER_BATCH)
_SEPARATOR = 2
_TAGS_KEPT = 4096


def send(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Store a message or a batch (codes 10, 310 and 320)."""
    header = request.header(
        SendRequest if request.code == RequestCode.SEND_MESSAGE else SendRequestV2
    )
    turn = state.turn
    try:
        if turn.overloaded:
            raise server_error(ResponseCode.SYSTEM_BUSY, OVERLOADED)
        target = state.targets.get((header.topic, header.queue_id))
        if target is None or target.version is not state.topics.version:
            target = find_target(state, connection.remote_address, header)
        take = _take_batch if header.batch else _take_one
        frame = take(state, connection, request, header, target)
    except ServerError as error:
        state.traffic.refused += 1
        return state.send_answers.refused(request, error.code, error.remark)
    except StoreError:
        turn.doubt()
        state.traffic.refused += 1
        return state.send_answers.refused(request, ResponseCode.SERVICE_NOT_AVAILABLE, NO_ROOM)
    if not request.flag & ONEWAY_FLAG:
        wait = header.properties is None or _NOT_WAITING not in header.properties
        turn.answer_stored(connection, request, frame, wait=wait)
    return None


def _take_one(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: SendRequest,
    target: Target,
) -> bytes:
    body = request.body
    text = (header.properties or "").encode("utf-8", "replace")
    if not body or len(body) > state.config.max_message_size:
        raise message_illegal(state.config.max_message_size)
    if target.retry or header.sys_flag & _NOT_PLAIN or _asks_for_more(text):
        return _take_draft(state, connection, request, header, target)
    if text and text[-1] != _SEPARATOR:
        text += b"\2"
    unique_key = _value(text, _UNIQUE_KEY, b"UNIQ_KEY")
    if unique_key is None:
        unique_key = state.unique_ids.next_id(state.turn.now_ms).encode()
        text = b"%bUNIQ_KEY\1%b\2" % (text, unique_key)
    text += state.stamp
    if len(text) > LIMIT:
        raise message_illegal(state.config.max_message_size)
    queue = target.queue
    record = Record(
        topic=target.topic,
        body=body,
        property_bytes=text,
        queue_id=queue.queue_id,
        flag=header.flag,
        sys_flag=header.sys_flag | target.sys_flag,
        born_timestamp_ms=header.born_timestamp,
        born_host=born_host(connection),
        reconsume_times=header.reconsume_times or 0,
    )
    tag = _value(text, _TAGS, b"TAGS")
    placed = append(state, queue, record, 0 if tag is None else _tag_code(tag))
    return state.send_answers.stored(
        request, queue.queue_id, placed.offset, placed.position, unique_key
    )


def _asks_for_more(text: bytes) -> bool:
    """Tell whether properties may hold what a plain message has not; rarely a false alarm.

    TRACE_ON is there already when a consumed message is sent again: it must not be added twice.
    """
    return (
        b"DEL" in text  # DELAY, TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS
        or b"TRAN_MSG\1" in text
        or b"TRACE_ON\1" in text
        or b"POP_CK\1" in text
        or b"INNER_NUM\1" in text
    )


def _value(text: bytes, start: bytes, name: bytes) -> bytes | None:
    """Find a property's value in text that ends with a separator."""
    at = text.rfind(start)
    if at < 0:
        return None
    if at == 0 or text[at - 1] == _SEPARATOR:
        at += len(start)
        value = text[at : text.find(b"\2", at)]
        if value:
            return value
    return find_property(text, name)  # another name ends alike, or an empty value follows


_tag_codes: dict[bytes, int] = {}


def _tag_code(tag: bytes) -> int:
    code = _tag_codes.get(tag)
    if code is None:
        if len(_tag_codes) >= _TAGS_KEPT:
            _tag_codes.clear()
        code = _tag_codes[tag] = java_hash(tag.decode("utf-8", "replace"))
    return code


def _take_draft(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: SendRequest,
    target: Target,
) -> bytes:
    text = (header.properties or "").encode("utf-8", "replace")
    properties = decode_properties(text) | decode_properties(state.stamp)
    properties.pop(names.POP_CHECKPOINT, None)
    if names.INNER_NUM in properties or header.sys_flag & SysFlag.INNER_BATCH:
        raise message_illegal(state.config.max_message_size)
    unique_key = properties.setdefault(
        names.UNIQUE_KEY, state.unique_ids.next_id(state.turn.now_ms)
    )
    draft = Draft(
        topic=header.topic,
        queue_id=target.queue.queue_id,
        body=request.body,
        properties=properties,
        flag=header.flag,
        sys_flag=header.sys_flag | target.sys_flag,
        born_timestamp_ms=header.born_timestamp,
        born_host=born_host(connection),
        reconsume_times=header.reconsume_times or 0,
    )
    if target.retry:
        give_up_retries(state, draft, request.version, header.max_reconsume_times)
    placed = place(state, draft)
    return state.send_answers.special(
        request,
        target.queue.queue_id,
        placed.offset,
        placed.position,
        unique_key=unique_key,
        recall_handle=draft.recall_handle,
    )


def _take_batch(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: SendRequest,
    target: Target,
) -> bytes:
    limit = state.config.max_message_size
    if target.retry:
        raise server_error(
            ResponseCode.MESSAGE_ILLEGAL,
            f"batch request does not support retry group {header.topic}",
        )
    text = (header.properties or "").encode("utf-8", "replace")
    delayed = find_property(text, b"DELAY")
    size = len(request.body)
    if header.sys_flag & _NOT_PLAIN or delayed is not None or not 0 < size <= limit:
        raise message_illegal(limit)
    queue = target.queue
    like = Record(
        topic=target.topic,
        body=b"",
        queue_id=queue.queue_id,
        sys_flag=header.sys_flag | target.sys_flag,
        born_timestamp_ms=header.born_timestamp,
        born_host=born_host(connection),
        reconsume_times=header.reconsume_times or 0,
    )
    try:
        stored = append_batch(state, queue, request.body, like)
    except (MessageMalformed, InvalidInput) as error:
        raise server_error(ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
    unique_key = find_property(text, b"UNIQ_KEY")
    return state.send_answers.stored_batch(
        request,
        queue.queue_id,
        stored.queue_offset,
        stored.positions,
        None if unique_key is None else unique_key.decode("utf-8", "replace"),
    )


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.SEND_MESSAGE: send,
    RequestCode.SEND_MESSAGE_V2: send,
    RequestCode.SEND_BATCH_MESSAGE: send,
}
