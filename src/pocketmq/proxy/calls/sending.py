"""Sends of messages, and what a producer may do about them afterwards."""

from pocketmq.client.producer.transactions import send_end
from pocketmq.errors import HeaderMalformed, InvalidInput, MQError, ResponseCode
from pocketmq.model import MessageQueue, TopicKind, TransactionState
from pocketmq.model.message import SendStatus, send_status
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.model.route import DEFAULT_TOPIC_QUEUE_NUMS
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.handles import RecallHandle
from pocketmq.protocol.message_ids import parse_offset_id
from pocketmq.protocol.requests.sending import (
    EndTransactionRequest,
    RecallRequest,
    RecallResponse,
    SendRequestV2,
    SendResponse,
)
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation import checks
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.outgoing import StoredForm, stored_forms
from pocketmq.proxy.translation.refusals import OK, CallRefused, joint_status, status, status_of
from pocketmq.proxy.translation.routes import check_kind
from pocketmq.proxy.translation.transactions import HalfMessagePlace, read_transaction_id
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

_MOST_TRIES = 3
STORED = frozenset(
    int(code)
    for code in (
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
    )
)
_CODES = {
    SendStatus.FLUSH_DISK_TIMEOUT: d.Code.MASTER_PERSISTENCE_TIMEOUT,
    SendStatus.FLUSH_SLAVE_TIMEOUT: d.Code.SLAVE_PERSISTENCE_TIMEOUT,
    SendStatus.SLAVE_NOT_AVAILABLE: d.Code.HA_NOT_AVAILABLE,
}
_ENDS = {
    d.TransactionResolution.COMMIT: TransactionState.COMMIT,
    d.TransactionResolution.ROLLBACK: TransactionState.ROLLBACK,
}


async def send_message(
    state: ProxyState, caller: Caller, request: s.SendMessageRequest
) -> s.SendMessageResponse:
    """Store messages of one topic; each has a result of its own."""
    forms = stored_forms(request.messages, caller.address, state.limits, state.clock.now_ms())
    if state.limits.check_message_types:
        kind = await state.cluster.topic_kind(forms[0].topic)
        for form in forms:
            check_kind(kind, form.kind)
    if len(forms) == 1:
        entries = [await _send(state, forms[0])]
    else:
        entries = []
        for form in forms:  # one after another: they may be of one message group
            try:
                entries.append(await _send(state, form))
            except (CallRefused, MQError) as error:
                entries.append(s.SendResultEntry(status=status_of(error)))
    return response_of(entries)


def response_of(entries: list[s.SendResultEntry]) -> s.SendMessageResponse:
    """Return the response with the results of all messages of a call."""
    codes = {entry.status.code for entry in entries}
    return s.SendMessageResponse(
        status=joint_status(codes, "send status is empty"), entries=entries
    )


async def send_again(
    state: ProxyState, form: StoredForm, queue: MessageQueue, error: MQError
) -> s.SendMessageResponse:
    """Return the response to a send of one message whose first try failed; raises as it does."""
    return response_of([await _send(state, form, (queue, error))])


async def _send(
    state: ProxyState, form: StoredForm, failed: tuple[MessageQueue, MQError] | None = None
) -> s.SendResultEntry:
    """Send one message; if a broker cannot be reached, to another one. One try may have failed."""
    tries = 1 if form.message_group else _MOST_TRIES
    while True:
        tries -= 1
        if failed is not None:
            _check_retry(state, form, *failed, tries)
            tries -= 1
        known = await state.cluster.route(form.topic)
        queue = state.choice.choose(known.publish_queues, form.message_group)
        try:
            answer = await state.cluster.session.brokers.call(
                queue.broker_name,
                RequestCode.SEND_MESSAGE_V2,
                _header(form, queue),
                form.body,
                master_only=True,
                accept=STORED,
            )
        except MQError as error:
            _check_retry(state, form, queue, error, tries)
            failed = None
        else:
            state.choice.succeeded(queue.broker_name)
            return entry_of(form, queue, answer)


def _check_retry(
    state: ProxyState, form: StoredForm, queue: MessageQueue, error: MQError, tries: int
) -> None:
    """Take note of a failed try; raise its error if it is not to be repeated."""
    if error.refresh_route:
        state.choice.failed(queue.broker_name)
        state.cluster.session.routes.refresh_soon(form.topic)
    if tries <= 0 or not error.retryable or error.outcome_unknown:
        raise error


def _header(form: StoredForm, queue: MessageQueue) -> SendRequestV2:
    return SendRequestV2(
        producer_group=form.topic,
        topic=form.topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=DEFAULT_TOPIC_QUEUE_NUMS,
        queue_id=queue.queue_id,
        sys_flag=form.sys_flag,
        born_timestamp=form.born_ms,
        flag=0,
        properties=form.properties,
        reconsume_times=0,
        unit_mode=False,
        batch=False,
        bname=queue.broker_name,
    )


def entry_of(form: StoredForm, queue: MessageQueue, answer: Command) -> s.SendResultEntry:
    """Return what a client gets for a message that a broker has stored."""
    outcome = send_status(answer.code) or SendStatus.SEND_OK
    code = _CODES.get(outcome)
    if code is not None:
        text = f"send message failed, sendStatus={outcome.value}"
        return s.SendResultEntry(status=status(code, text))
    stored = answer.header(SendResponse)
    transaction = stored.transaction_id or ""
    if form.kind is TopicKind.TRANSACTION:
        place = parse_offset_id(stored.msg_id).commit_log_offset
        own_id = transaction or form.message_id
        transaction = str(HalfMessagePlace(own_id, queue.broker_name, stored.queue_offset, place))
    return s.SendResultEntry(
        status=OK,
        message_id=form.message_id,
        transaction_id=transaction,
        offset=stored.queue_offset,
        recall_handle=stored.recall_handle or "",
    )


async def end_transaction(
    state: ProxyState, _: Caller, request: s.EndTransactionRequest
) -> s.EndTransactionResponse:
    """Commit a half message or roll it back; without a resolution the broker checks again."""
    topic = checks.topic_name(request.topic)
    half = read_transaction_id(request.transaction_id)
    await _reach(state, half.broker, topic)
    session = state.cluster.session
    header = EndTransactionRequest(
        topic=topic,
        producer_group=topic,
        tran_state_table_offset=half.queue_offset,
        commit_log_offset=half.commit_log_offset,
        commit_or_rollback=int(_ENDS.get(request.resolution, TransactionState.UNKNOWN)),
        from_transaction_check=request.source == d.TransactionSource.SOURCE_SERVER_CHECK,
        msg_id=request.message_id,
        transaction_id=half.transaction_id,
        bname=half.broker,
    )
    await send_end(
        session,
        session.brokers.address(half.broker, master_only=True),
        header,
        "end transaction from proxy",
        timeout=session.options.request_timeout,
    )
    return s.EndTransactionResponse(status=OK)


async def recall_message(
    state: ProxyState, _: Caller, request: s.RecallMessageRequest
) -> s.RecallMessageResponse:
    """Take a delayed message back before it is due."""
    topic = checks.topic_name(request.topic)
    if state.limits.check_message_types:
        check_kind(await state.cluster.topic_kind(topic), TopicKind.DELAY)
    try:
        handle = RecallHandle.parse(request.recall_handle)
    except HeaderMalformed as error:
        raise CallRefused(d.Code.INTERNAL_SERVER_ERROR, str(error)) from error
    await _reach(state, handle.broker_name, topic)
    header = RecallRequest(
        topic=topic, recall_handle=request.recall_handle, bname=handle.broker_name
    )
    answer = await state.cluster.session.brokers.call(
        handle.broker_name, RequestCode.RECALL_MESSAGE, header, master_only=True
    )
    recalled = answer.header(RecallResponse)
    return s.RecallMessageResponse(status=OK, message_id=recalled.msg_id)


async def _reach(state: ProxyState, broker: str, topic: str) -> None:
    try:
        await state.cluster.reach(broker, topic)
    except CallRefused as error:
        raise CallRefused(d.Code.BAD_REQUEST, error.message) from error
    except InvalidInput as error:
        raise CallRefused(d.Code.BAD_REQUEST, str(error)) from error
