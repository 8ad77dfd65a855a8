"""Pulls and offsets of queues, for clients that keep their own position."""

from collections.abc import AsyncIterator
from typing import TypeVar

from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.client.questions import offsets as questions
from pocketmq.client.questions.asking import Question
from pocketmq.client.questions.pulling import PullSpec, pull_once
from pocketmq.client.session import ask_session
from pocketmq.errors import FilterSyntaxError, MQError
from pocketmq.model import MessageQueue, PullFlag
from pocketmq.model.groups import SQL92, TAG
from pocketmq.protocol import DeliveryContext
from pocketmq.protocol.filter.subscribe import subscribe
from pocketmq.protocol.pulled import decode_pulled, from_offset
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation import checks
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.incoming import deliver
from pocketmq.proxy.translation.refusals import OK, CallRefused, status, status_of
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

A = TypeVar("A")

_MOST_AT_ONCE = 32
_GRACE = 3.0
_EMPTY = {
    PullStatus.NO_NEW_MSG: (d.Code.MESSAGE_NOT_FOUND, "no new message"),
    PullStatus.NO_MATCHED_MSG: (d.Code.MESSAGE_NOT_FOUND, "no match message"),
    PullStatus.OFFSET_ILLEGAL: (d.Code.ILLEGAL_OFFSET, "offset is out of the queue's range"),
}


async def pull_message(
    state: ProxyState, _: Caller, request: s.PullMessageRequest, remaining: float | None
) -> AsyncIterator[s.PullMessageResponse]:
    """Yield a status, the messages from an offset on, and the next offset to pull."""
    try:
        queue, group = _queue(request.message_queue), checks.group_name(request.group)
        spec = _spec(state, group, queue.topic, request, remaining)
        await state.cluster.route(queue.topic)
        pulled = await ask_session(
            state.cluster.session,
            pull_once(queue, request.offset, spec, timeout=spec.suspend + _GRACE),
        )
    except (CallRefused, MQError) as error:
        yield s.PullMessageResponse(status=status_of(error))
        return
    if pulled.status is not PullStatus.FOUND:
        yield s.PullMessageResponse(status=status(*_EMPTY[pulled.status]))
    else:
        context = DeliveryContext(
            broker_name=queue.broker_name, queue_id=queue.queue_id, offset_delta=pulled.offset_delta
        )
        yield s.PullMessageResponse(status=OK)
        messages = decode_pulled(pulled.records, context)
        for message in from_offset(messages, request.offset):
            response = s.PullMessageResponse()
            deliver(message, response.message)
            yield response
    yield s.PullMessageResponse(next_offset=pulled.next_offset)


def _spec(
    state: ProxyState,
    group: str,
    topic: str,
    request: s.PullMessageRequest,
    remaining: float | None,
) -> PullSpec:
    wait = checks.seconds_of(request.long_polling_timeout, d.Code.ILLEGAL_POLLING_TIME)
    wait = min(max(0.0, wait), state.limits.max_long_polling, remaining or wait)
    kind = SQL92 if request.filter_expression.type == d.FilterType.SQL else TAG
    try:
        subscription = subscribe(topic, request.filter_expression.expression, kind)
    except FilterSyntaxError as error:
        raise CallRefused(d.Code.ILLEGAL_FILTER_EXPRESSION, str(error)) from error
    if request.offset < 0:
        raise CallRefused(d.Code.ILLEGAL_OFFSET, f"offset {request.offset} is negative")
    flags = PullFlag.SUBSCRIPTION | PullFlag.LITE_PULL
    return PullSpec(
        group,
        min(max(1, request.batch_size), _MOST_AT_ONCE),
        expression=subscription.sub_string,
        expression_type=subscription.expression_type,
        flags=flags | PullFlag.SUSPEND if wait else flags,
        suspend=wait,
    )


async def update_offset(
    state: ProxyState, _: Caller, request: s.UpdateOffsetRequest
) -> s.UpdateOffsetResponse:
    """Store a group's progress in a queue."""
    queue, group = _queue(request.message_queue), checks.group_name(request.group)
    if request.offset < 0:
        raise CallRefused(d.Code.ILLEGAL_OFFSET, f"offset {request.offset} is negative")
    await _ask(state, queue, questions.commit(group, queue, request.offset))
    return s.UpdateOffsetResponse(status=OK)


async def get_offset(
    state: ProxyState, _: Caller, request: s.GetOffsetRequest
) -> s.GetOffsetResponse:
    """Return a group's progress in a queue."""
    queue, group = _queue(request.message_queue), checks.group_name(request.group)
    offset = await _ask(state, queue, questions.committed(group, queue, zero_if_none=False))
    if offset is None:
        text = f"group {group} has no offset in this queue"
        raise CallRefused(d.Code.OFFSET_NOT_FOUND, text)
    return s.GetOffsetResponse(status=OK, offset=offset)


async def query_offset(
    state: ProxyState, _: Caller, request: s.QueryOffsetRequest
) -> s.QueryOffsetResponse:
    """Return the first offset of a queue, the next one, or that of a time."""
    queue = _queue(request.message_queue)
    policy = request.query_offset_policy
    if policy == d.QueryOffsetPolicy.BEGINNING:
        question = questions.first_offset(queue)
    elif policy == d.QueryOffsetPolicy.END:
        question = questions.end_offset(queue)
    elif policy == d.QueryOffsetPolicy.TIMESTAMP and request.HasField("timestamp"):
        time_ms = checks.milliseconds(request.timestamp, d.Code.BAD_REQUEST)
        question = questions.near_offset(queue, time_ms)
    else:
        raise CallRefused(d.Code.BAD_REQUEST, "the offset policy is unknown or has no timestamp")
    return s.QueryOffsetResponse(status=OK, offset=await _ask(state, queue, question))


def _queue(queue: d.MessageQueue) -> MessageQueue:
    topic = checks.topic_name(queue.topic)
    if not queue.broker.name or queue.id < 0:
        raise CallRefused(d.Code.BAD_REQUEST, "the message queue has no broker or no id")
    return MessageQueue(topic, queue.broker.name, queue.id)


async def _ask(state: ProxyState, queue: MessageQueue, question: Question[A]) -> A:
    await state.cluster.route(queue.topic)
    return await ask_session(state.cluster.session, question)
