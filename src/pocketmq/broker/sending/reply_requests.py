"""Replies to requests (324, 325): pushed to the client that asked, and stored if so configured.

Owns Java's checks, codes and words. The sender of a reply is answered when the client that waits
for it has taken it, or cannot be reached.
"""

import logging
from contextlib import suppress
from functools import partial

import msgspec

from pocketmq.broker.sending.targets import find_target
from pocketmq.broker.state import Answer, BrokerState, Handler
from pocketmq.broker.writing.appending import append, message_illegal
from pocketmq.broker.writing.drafts import SendTarget, born_host
from pocketmq.errors import InvalidInput, ResponseCode, ServerError, StoreError
from pocketmq.model import COMPRESSION_MASK, SysFlag, property_names
from pocketmq.net import Connection
from pocketmq.protocol import ONEWAY_FLAG, Command, RequestCode, tags_code
from pocketmq.protocol.property_text import append_property, decode_properties
from pocketmq.protocol.records import Record
from pocketmq.protocol.requests import client_calls, sending

logger = logging.getLogger("pocketmq.broker")

COMPRESSION = int(SysFlag.COMPRESSED) | COMPRESSION_MASK


def reply(state: BrokerState, connection: Connection, request: Command) -> Answer:
    """Push a reply to the client that sent the request."""
    header = request.header(
        sending.SendRequest
        if request.code == RequestCode.SEND_REPLY_MESSAGE
        else sending.SendRequestV2
    )
    try:
        target = find_target(state, connection.remote_address, header)
        if len(request.body) > state.config.max_message_size:
            raise message_illegal(state.config.max_message_size)
    except ServerError as error:
        return state.send_answers.refused(request, error.code, error.remark)
    text = _stamped(state, (header.properties or "").encode("utf-8", "replace"))
    stored = _store(state, connection, request, header, target, text)
    client_id = decode_properties(text).get(property_names.REPLY_TO_CLIENT)
    answer = partial(_answer, state, request, stored)
    if client_id is None:
        return answer(f"reply message properties[{property_names.REPLY_TO_CLIENT}] is null")
    client = state.producers.find(client_id)
    if client is None or state.replies is None:
        return answer(f"push reply message fail, channel of <{client_id}> not found.")

    def pushed(took: bool) -> None:  # noqa: FBT001 - the only thing there is to say
        if not request.flag & ONEWAY_FLAG:
            remark = None if took else f"push reply message to {client_id}fail."
            connection.write(answer(remark).encode())

    state.replies.push(client, _push_of(state, connection, request, header, text), pushed)
    return None


def _stamped(state: BrokerState, text: bytes) -> bytes:
    """Add the properties every message gets, unless they exceed the limit."""
    trace_on = "true" if state.config.trace_on else "false"
    with suppress(InvalidInput):
        text = append_property(text, property_names.MSG_REGION, state.config.region_id)
        text = append_property(text, property_names.TRACE_ON, trace_on)
    return text


def _store(  # noqa: PLR0917 - all there is of a reply
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: sending.SendRequest,
    target: SendTarget,
    text: bytes,
) -> sending.SendResponse:
    """Store a reply if so configured; a failure does not keep it from being pushed."""
    queue = target.queue
    answer = sending.SendResponse(
        msg_id="0",  # clients require one
        queue_id=queue.queue_id,
        queue_offset=0,
        region=state.config.region_id,
        trace_on=state.config.trace_on,
    )
    if not state.config.store_reply_message_enable or not request.body:
        return answer
    try:
        record = Record(
            topic=target.topic,
            body=request.body,
            property_bytes=text,
            queue_id=queue.queue_id,
            flag=header.flag,
            sys_flag=header.sys_flag & COMPRESSION | target.sys_flag,
            born_timestamp_ms=header.born_timestamp,
            born_host=born_host(connection),
            reconsume_times=header.reconsume_times or 0,
        )
        stored = append(state, queue, record, tags_code(text))
    except (StoreError, InvalidInput) as error:
        state.batch.check_dropped()
        logger.warning('storing a reply failed: error="%s"; pushing it anyway', error)
        return answer
    identity = state.send_answers.identity(stored.positions[0])
    return msgspec.structs.replace(answer, msg_id=identity, queue_offset=stored.queue_offset)


def _answer(
    state: BrokerState, request: Command, stored: sending.SendResponse, remark: str | None
) -> Command:
    if remark is None:
        return request.reply(ResponseCode.SUCCESS, None, stored)
    state.traffic.refused += 1
    logger.warning("%s", remark)
    return request.reply(ResponseCode.SYSTEM_ERROR, remark, stored)


def _push_of(
    state: BrokerState,
    connection: Connection,
    request: Command,
    header: sending.SendRequest,
    text: bytes,
) -> Command:
    with suppress(InvalidInput):  # properties are limited in size
        text = append_property(text, property_names.PUSH_REPLY_TIME, str(state.batch.now_ms))
    push = client_calls.PushReplyRequest(
        producer_group=header.producer_group,
        topic=header.topic,
        default_topic=header.default_topic,
        default_topic_queue_nums=header.default_topic_queue_nums,
        queue_id=header.queue_id,
        sys_flag=header.sys_flag,
        born_timestamp=header.born_timestamp,
        flag=header.flag,
        properties=text.decode("utf-8", "replace"),
        reconsume_times=header.reconsume_times,
        unit_mode=bool(header.unit_mode),
        born_host=connection.remote_address,
        store_host=state.address,
        store_timestamp=state.batch.now_ms,
    )
    return Command.request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, 0, push, request.body)


HANDLERS: dict[RequestCode, Handler] = {
    RequestCode.SEND_REPLY_MESSAGE: reply,
    RequestCode.SEND_REPLY_MESSAGE_V2: reply,
}
