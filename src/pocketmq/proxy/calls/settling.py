"""What a consumer does with a received message: acknowledges it, hides it longer, gives it up."""

import asyncio

from pocketmq.client.pop.requests import PopRequests
from pocketmq.errors import MQError, ResponseCode, ServerError
from pocketmq.protocol import DeliveryContext, RequestCode
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.requests.reading import ViewMessageRequest
from pocketmq.protocol.requests.sending import SendBackRequest
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation import checks
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.receipts import Receipt, read_receipt_handle
from pocketmq.proxy.translation.refusals import OK, CallRefused, joint_status, status, status_of
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

_TO_DEAD_LETTERS = -1
_MOST_AT_ONCE = 32
_NO_SUCH_MESSAGE = {
    int(code)
    for code in (
        ResponseCode.MESSAGE_ILLEGAL,
        ResponseCode.NO_MESSAGE,
        ResponseCode.INVALID_PARAMETER,
    )
}
"""Responses that no retry can change: a client that gets INTERNAL_SERVER_ERROR tries for ever."""


async def ack_message(
    state: ProxyState, caller: Caller, request: s.AckMessageRequest
) -> s.AckMessageResponse:
    """Acknowledge messages; each has a result of its own."""
    topic, group = checks.topic_name(request.topic), checks.group_name(request.group)

    async def ack(entry: s.AckMessageEntry) -> s.AckMessageResultEntry:
        try:
            await _ack(state, caller, topic, group, entry.receipt_handle)
            outcome = OK
        except (CallRefused, MQError) as error:
            outcome = ack_failure(error)
        return result_of(entry, outcome)

    entries: list[s.AckMessageResultEntry] = []
    for start in range(0, len(request.entries), _MOST_AT_ONCE):
        some = request.entries[start : start + _MOST_AT_ONCE]
        if len(some) == 1:  # as in most calls; a task for it would cost more than the ack
            entries.append(await ack(some[0]))
        else:
            entries += await asyncio.gather(*map(ack, some))
    return response_of(entries)


def result_of(entry: s.AckMessageEntry, outcome: d.Status) -> s.AckMessageResultEntry:
    """Return what a client gets for a message that it acknowledged."""
    return s.AckMessageResultEntry(
        message_id=entry.message_id, receipt_handle=entry.receipt_handle, status=outcome
    )


def response_of(entries: list[s.AckMessageResultEntry]) -> s.AckMessageResponse:
    """Return the response with the results of all messages of a call."""
    codes = {entry.status.code for entry in entries}
    joint = joint_status(codes, "ack message result is empty")
    return s.AckMessageResponse(status=joint, entries=entries)


def ack_failure(error: CallRefused | MQError) -> d.Status:
    """Return the status of a message that could not be acknowledged."""
    return _status_of(error, "ack failed: status is abnormal")


async def _ack(state: ProxyState, caller: Caller, topic: str, group: str, handle: str) -> None:
    receipt = await _taken(state, caller, group, handle)
    await state.cluster.reach(receipt.handle.broker_name, topic)
    requests = PopRequests(state.cluster.session, group, ordered=False, from_first=False)
    await requests.ack(receipt.handle.broker_name, [(topic, receipt.handle)])


async def change_invisible_duration(
    state: ProxyState, caller: Caller, request: s.ChangeInvisibleDurationRequest
) -> s.ChangeInvisibleDurationResponse:
    """Hide a message for a time from now on; the client gets a new handle."""
    topic, group = checks.topic_name(request.topic), checks.group_name(request.group)
    wanted = checks.seconds_of(request.invisible_duration, d.Code.ILLEGAL_INVISIBLE_TIME)
    hidden = checks.invisible_seconds(wanted, state.limits)
    receipt = await _taken(state, caller, group, request.receipt_handle)
    await state.cluster.reach(receipt.handle.broker_name, topic)
    requests = PopRequests(state.cluster.session, group, ordered=False, from_first=False)
    try:
        handle = await requests.change_invisible(topic, receipt.handle, hidden)
    except MQError as error:
        text = "changeInvisibleDuration failed: status is abnormal"
        return s.ChangeInvisibleDurationResponse(status=_status_of(error, text))
    changed = Receipt(handle, receipt.commit_log_offset)
    return s.ChangeInvisibleDurationResponse(status=OK, receipt_handle=str(changed))


async def forward_to_dead_letters(
    state: ProxyState, caller: Caller, request: s.ForwardMessageToDeadLetterQueueRequest
) -> s.ForwardMessageToDeadLetterQueueResponse:
    """Send a message to the group's dead-letter topic and acknowledge it."""
    topic, group = checks.topic_name(request.topic), checks.group_name(request.group)
    receipt = await _taken(state, caller, group, request.receipt_handle)
    await dead_letter(state, topic, group, receipt, request.message_id)
    return s.ForwardMessageToDeadLetterQueueResponse(status=OK)


async def dead_letter(
    state: ProxyState, topic: str, group: str, receipt: Receipt, message_id: str
) -> None:
    """Send a message to the group's dead-letter topic and acknowledge it."""
    if receipt.commit_log_offset < 0:
        raise CallRefused(d.Code.INVALID_RECEIPT_HANDLE, "commit log offset is empty")
    broker = receipt.handle.broker_name
    await state.cluster.reach(broker, topic)
    stored_in = receipt.handle.mark.real_topic(topic, group)
    await _check_place(state, broker, receipt.commit_log_offset, stored_in)
    header = SendBackRequest(
        offset=receipt.commit_log_offset,
        group=group,
        delay_level=_TO_DEAD_LETTERS,
        origin_msg_id=message_id,
        origin_topic=stored_in,
        max_reconsume_times=0,
        bname=broker,
    )
    session = state.cluster.session
    await session.brokers.call(broker, RequestCode.CONSUMER_SEND_MSG_BACK, header, master_only=True)
    requests = PopRequests(session, group, ordered=False, from_first=False)
    await requests.ack(broker, [(topic, receipt.handle)])


async def _check_place(state: ProxyState, broker: str, offset: int, topic: str) -> None:
    """Raise `CallRefused` unless the record at an offset is one of a topic.

    A made-up handle must not copy messages of other topics into the client's own dead letters.
    """
    answer = await state.cluster.session.brokers.call(
        broker,
        RequestCode.VIEW_MESSAGE_BY_ID,
        ViewMessageRequest(offset=offset, topic=topic),
        master_only=True,
    )
    found = decode_pulled(answer.body, DeliveryContext(broker_name=broker))
    if [message.topic for message in found] != [topic]:
        raise CallRefused(d.Code.INVALID_RECEIPT_HANDLE, "the message is not one of this topic")


async def _taken(state: ProxyState, caller: Caller, group: str, handle: str) -> Receipt:
    """Return the newest receipt of a message and stop renewing it; raises `CallRefused`."""
    given = read_receipt_handle(handle)
    receipt = await state.renewals.take(caller.client_id, group, given)
    receipt.check_valid(state.clock.now_ms())
    return receipt


def _status_of(error: CallRefused | MQError, abnormal: str) -> d.Status:
    if isinstance(error, ServerError) and error.code in _NO_SUCH_MESSAGE:
        return status(d.Code.INVALID_RECEIPT_HANDLE, error.remark)
    found = status_of(error)
    if isinstance(error, ServerError) and found.code == d.Code.INTERNAL_SERVER_ERROR:
        return status(d.Code.INTERNAL_SERVER_ERROR, abnormal)
    return found
