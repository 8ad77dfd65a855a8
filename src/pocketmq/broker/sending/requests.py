"""Taking messages in: one at a time or in batches, with Java's checks, codes and words (5.x).

A plain message takes the short way: its target is cached, its properties are only searched, and
the answer is a template. Whatever asks for more (retries, delays, transactions) becomes a
draft. A batch with an id of its own to a topic with `queue.type=BatchCQ` is stored as one
record, as in Java; those of 4.x producers are stored message by message, and so is a single
message.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

from pocketmq import errors
from pocketmq.broker.core.refusals import NO_LITE_TOPICS, OVERLOADED, STORE_UNAVAILABLE
from pocketmq.broker.retry.requests import dead_letter_exhausted
from pocketmq.broker.sending.targets import find_target, queue_of
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.broker.writing.appending import (
    append,
    append_batch,
    append_inner,
    message_illegal,
    place,
)
from pocketmq.broker.writing.drafts import REDIRECTING, Draft, SendTarget, born_host
from pocketmq.model import TRANSACTION_MASK, SysFlag, property_names
from pocketmq.model.java_strings import java_hash
from pocketmq.net import Connection
from pocketmq.protocol import ONEWAY_FLAG, Command, RequestCode, tags_code
from pocketmq.protocol.property_text import LIMIT, decode_properties, encode_properties
from pocketmq.protocol.records import Record
from pocketmq.protocol.requests.sending import SendRequest, SendRequestV2

_NOT_WAITING = "WAIT\1false"  # or the end of another name, which must not be taken for it
_INNER_BATCH = int(SysFlag.INNER_BATCH)
_NOT_PLAIN = TRANSACTION_MASK | _INNER_BATCH
_COMPRESSED = int(SysFlag.COMPRESSED)
_REMOVED = (
    property_names.INNER_NUM,
    property_names.INNER_BASE,
    property_names.POP_CHECKPOINT,
)
"""Properties of an inner batch that are not stored."""
_ELSEWHERE_FIRST = tuple(
    name for name in REDIRECTING if name != property_names.TRANSACTION_PREPARED
)
"""Properties by which a message is kept in another topic first."""


def send(
    state: BrokerState,
    connection: Connection,
    request: Command,
    rewrite: Callable[[bytes], bytes] | None = None,
) -> Answer:
    """Store a message or a batch (codes 10, 310 and 320); `rewrite` changes the receipt."""
    header = request.header(
        SendRequest if request.code == RequestCode.SEND_MESSAGE else SendRequestV2
    )
    batch = state.batch
    try:
        if batch.overloaded:
            raise errors.server_error(errors.ResponseCode.SYSTEM_BUSY, OVERLOADED)
        target = state.targets.get((header.topic, header.queue_id))
        if target is None or target.version is not state.topics.version:
            target = find_target(state, connection.remote_address, header)
        take = _take_batch if header.batch else _take_one
        frame = take(state, connection, request, header, target)
        if rewrite is not None:
            frame = rewrite(frame)
    except errors.ServerError as error:
        state.traffic.refused += 1
        return state.send_answers.refused(request, error.code, error.remark)
    except errors.InvalidInput as error:
        state.traffic.refused += 1
        return state.send_answers.refused(request, errors.ResponseCode.MESSAGE_ILLEGAL, str(error))
    except errors.StoreError:
        batch.check_dropped()
        state.traffic.refused += 1
        return state.send_answers.refused(
            request, errors.ResponseCode.SERVICE_NOT_AVAILABLE, STORE_UNAVAILABLE
        )
    if not request.flag & ONEWAY_FLAG:
        careless = header.properties is not None and _NOT_WAITING in header.properties
        wait = not careless or _value(f"{header.properties}\2", "WAIT\1") != "false"
        batch.answer_stored(connection, request, frame, wait=wait)
    return None


def _take_one(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: SendRequest,
    target: SendTarget,
) -> bytes:
    body = request.body
    text = header.properties or ""
    if not body or len(body) > state.config.max_message_size:
        raise message_illegal(state.config.max_message_size)
    if target.retry or header.sys_flag & _NOT_PLAIN or _asks_for_more(text):
        return _take_draft(state, connection, request, header, target)
    if text and text[-1] != "\2":
        text += "\2"
    unique_key = _value(text, "UNIQ_KEY\1")
    if unique_key is None:
        unique_key = state.unique_ids.next_id(state.batch.now_ms)
        text = f"{text}UNIQ_KEY\1{unique_key}\2"
    tag = _value(text, "TAGS\1")
    property_bytes = (text + state.stamp).encode("utf-8", "replace")
    if len(property_bytes) > LIMIT:
        raise message_illegal(state.config.max_message_size)
    queue = target.queue
    record = Record(
        topic=target.topic,
        body=body,
        property_bytes=property_bytes,
        queue_id=queue.queue_id,
        flag=header.flag,
        sys_flag=header.sys_flag | target.sys_flag,
        born_timestamp_ms=header.born_timestamp,
        born_host=born_host(connection),
        reconsume_times=header.reconsume_times or 0,
    )
    stored = append(state, queue, record, 0 if tag is None else java_hash(tag))
    return state.send_answers.stored(
        request, queue.queue_id, stored.queue_offset, stored.positions[0], unique_key
    )


def _asks_for_more(text: str) -> bool:
    """Return whether properties may hold what a plain message has not; false positives are rare.

    TRACE_ON is there already when a consumed message is sent again: it must not be added twice.
    """
    return (
        "DEL" in text  # DELAY, TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS
        or "TRAN_MSG\1" in text
        or "TRACE_ON\1" in text
        or "POP_CK\1" in text
        or "INNER_NUM\1" in text
        or "_SYS_MSG_PRIORITY_\1" in text
        or "__LITE_TOPIC\1" in text
    )


def _value(text: str, start: str) -> str | None:
    """Find a property's value, by its name and separator, in text that ends with a separator."""
    at = text.rfind(start)
    if at < 0:
        return None
    if at == 0 or text[at - 1] == "\2":
        at += len(start)
        value = text[at : text.find("\2", at)]
        if value:
            return value
    # Another name ends alike, or an empty value stands behind the one that counts.
    return decode_properties(text.encode("utf-8", "replace")).get(start[:-1])


@lru_cache(maxsize=8)
def _decoded(stamp: str) -> dict[str, str]:
    """Return the properties every message gets; not to be changed."""
    return decode_properties(stamp.encode())


def _take_draft(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: SendRequest,
    target: SendTarget,
) -> bytes:
    text = (header.properties or "").encode("utf-8", "replace")
    properties = decode_properties(text) | _decoded(state.stamp)
    properties.pop(property_names.POP_CHECKPOINT, None)
    if property_names.INNER_NUM in properties or header.sys_flag & _INNER_BATCH:
        raise message_illegal(state.config.max_message_size)
    if properties.get(property_names.LITE_TOPIC):
        raise errors.server_error(errors.ResponseCode.MESSAGE_ILLEGAL, NO_LITE_TOPICS)
    if state.gate is not None and state.gate.strict:
        _check_takes_back(header.topic, properties)
    unique_key = properties.get(property_names.UNIQUE_KEY)
    if unique_key is None:
        unique_key = state.unique_ids.next_id(state.batch.now_ms)
        properties[property_names.UNIQUE_KEY] = unique_key
    queue_id = queue_of(target.config, target.queue.queue_id, properties)
    draft = Draft(
        topic=header.topic,
        queue_id=queue_id,
        body=request.body,
        properties=properties,
        flag=header.flag,
        sys_flag=header.sys_flag | target.sys_flag,
        born_timestamp_ms=header.born_timestamp,
        born_host=born_host(connection),
        reconsume_times=header.reconsume_times or 0,
    )
    if target.retry:
        dead_letter_exhausted(state, draft, request.version, header.max_reconsume_times)
    placed = place(state, draft)
    return state.send_answers.special(
        request,
        queue_id,
        placed.offset,
        placed.position,
        unique_key=unique_key,
        recall_handle=draft.recall_handle,
    )


def _check_takes_back(topic: str, properties: Mapping[str, str]) -> None:
    """Refuse a message that recalls a timed one of another topic; see `RECALL_MESSAGE`."""
    key = properties.get(property_names.TIMER_DELETE_UNIQUE_KEY)
    if key is not None and not key.startswith(f"{topic}+"):
        raise errors.server_error(
            errors.ResponseCode.NO_PERMISSION,
            f"{property_names.TIMER_DELETE_UNIQUE_KEY} names a message of another topic "
            f"than {topic}",
        )


def _take_batch(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: SendRequest,
    target: SendTarget,
) -> bytes:
    limit = state.config.max_message_size
    if target.retry:
        raise errors.server_error(
            errors.ResponseCode.MESSAGE_ILLEGAL,
            f"batch request does not support retry group {header.topic}",
        )
    text = (header.properties or "") + "\2"
    delayed = _value(text, "DELAY\1") is not None
    size = len(request.body)
    unique_key = _value(text, "UNIQ_KEY\1")
    inner = target.batches and unique_key is not None
    refused = TRANSACTION_MASK if inner else _NOT_PLAIN
    if header.sys_flag & refused or delayed or not 0 < size <= limit:
        raise message_illegal(limit)
    if inner:
        return _take_inner(state, connection, request, header, target)
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
    except errors.MessageMalformed as error:
        raise errors.server_error(errors.ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
    return state.send_answers.stored_batch(
        request,
        queue.queue_id,
        stored.queue_offset,
        stored.positions,
        unique_key,
    )


def _take_inner(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: SendRequest,
    target: SendTarget,
) -> bytes:
    """Store it as one record; return the answer's frame. Raises `ServerError`, `StoreError`."""
    limit = state.config.max_message_size
    properties = decode_properties((header.properties or "").encode("utf-8", "replace"))
    if any(name in properties for name in _ELSEWHERE_FIRST):
        raise message_illegal(limit)  # it would be kept in a topic of other queues first
    if header.sys_flag & _COMPRESSED:
        raise message_illegal(limit)  # Java stores it, and no consumer can read it
    unique_key = properties[property_names.UNIQUE_KEY]
    for name in _REMOVED:
        properties.pop(name, None)
    queue = target.queue
    try:
        text = encode_properties(properties | decode_properties(state.stamp.encode()))
        like = Record(
            topic=target.topic,
            body=b"",
            property_bytes=text,
            queue_id=queue.queue_id,
            flag=header.flag,
            sys_flag=header.sys_flag | target.sys_flag,
            born_timestamp_ms=header.born_timestamp,
            born_host=born_host(connection),
            reconsume_times=header.reconsume_times or 0,
        )
        stored = append_inner(state, queue, request.body, like, tags_code(text))
    except errors.InvalidInput as error:
        raise message_illegal(limit) from error
    except errors.MessageMalformed as error:
        raise errors.server_error(errors.ResponseCode.MESSAGE_ILLEGAL, str(error)) from error
    return state.send_answers.inner_batch(
        request, queue.queue_id, stored.queue_offset, stored.positions[0], unique_key
    )


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.SEND_MESSAGE: send,
    RequestCode.SEND_MESSAGE_V2: send,
    RequestCode.SEND_BATCH_MESSAGE: send,
}
