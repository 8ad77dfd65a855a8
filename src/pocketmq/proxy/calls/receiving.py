"""ReceiveMessage: messages popped for a client, as a stream of status, messages and a time."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable

import msgspec

from pocketmq.client.pop.popped import PopResult
from pocketmq.client.pop.requests import ANY_QUEUE, PopRequests
from pocketmq.errors import FilterSyntaxError, MQError
from pocketmq.model import GroupConfig, MessageQueue, Subscription
from pocketmq.model.groups import SQL92, TAG
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.filter.subscribe import subscribe
from pocketmq.proxy.calls.settling import dead_letter
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation import checks
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.incoming import receipt_of, received
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.receipts import Receipt
from pocketmq.proxy.translation.refusals import OK, CallRefused, status, status_of
from pocketmq.proxy.translation.settings import max_attempts
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

logger = logging.getLogger("pocketmq.proxy")

_MOST_AT_ONCE = 32
_DEFAULT_REQUEST_TIMEOUT = 3.0
_POLLING_CODE_SINCE = "5.0.3"


class Receive(msgspec.Struct, frozen=True):
    """One request to receive, checked."""

    topic: str
    group: str
    config: GroupConfig
    subscription: Subscription
    broker: str
    most: int
    hidden: float
    wait: float
    renew: bool
    attempt: str | None


async def receive_message(
    state: ProxyState, caller: Caller, request: s.ReceiveMessageRequest, remaining: float | None
) -> AsyncIterator[s.ReceiveMessageResponse | bytes]:
    """Yield a status, the messages if there are any, and the time of delivery.

    `remaining` is how long the client waits at most.
    """
    try:
        wanted = await _checked(state, caller, request, remaining)
        client = state.clients.get(caller.client_id)
        if client is not None:
            client.receives(wanted.group, wanted.subscription)
        result = await _pop(state, wanted)
        messages = _kept(state, wanted, result.messages)
        if wanted.renew and messages:
            _renewed(state, caller, wanted, messages)
    except (CallRefused, MQError) as error:
        yield s.ReceiveMessageResponse(status=status_of(error))
    else:
        if not messages:
            yield s.ReceiveMessageResponse(status=_empty(result))
        else:
            async for response in _delivery(state, caller, wanted, messages):
                yield response
    done = s.ReceiveMessageResponse()
    done.delivery_timestamp.FromMilliseconds(state.clock.now_ms())
    yield done


async def _checked(
    state: ProxyState, caller: Caller, request: s.ReceiveMessageRequest, remaining: float | None
) -> Receive:
    topic = checks.topic_name(request.message_queue.topic)
    group = checks.group_name(request.group)
    hidden = checks.seconds_of(request.invisible_duration, d.Code.ILLEGAL_INVISIBLE_TIME)
    if request.auto_renew:
        hidden = state.limits.default_invisible_time
    else:
        checks.invisible_seconds(hidden, state.limits, state.limits.min_invisible_time_for_receive)
    return Receive(
        topic,
        group,
        await state.cluster.group(group),
        _subscription(topic, request.filter_expression),
        await _broker(state, topic, request.message_queue.broker.name),
        min(max(1, request.batch_size), _MOST_AT_ONCE),
        hidden,
        _polling_time(state, caller, request, remaining),
        request.auto_renew,
        request.attempt_id or None,
    )


def _polling_time(
    state: ProxyState, caller: Caller, request: s.ReceiveMessageRequest, remaining: float | None
) -> float:
    """Return how long the broker may wait for messages: what is asked for, within limits."""
    limits: ProxyLimits = state.limits
    if request.HasField("long_polling_timeout"):
        wait = checks.seconds_of(request.long_polling_timeout, d.Code.ILLEGAL_POLLING_TIME)
    else:
        client = state.clients.get(caller.client_id)
        timeout = _DEFAULT_REQUEST_TIMEOUT
        if client is not None and client.settings.HasField("request_timeout"):
            timeout = checks.seconds_of(client.settings.request_timeout, d.Code.BAD_REQUEST)
        wait = limits.max_long_polling if remaining is None else remaining - timeout / 2
    wait = min(max(wait, limits.min_long_polling), limits.max_long_polling)
    if remaining is None or wait <= remaining:
        return wait
    if remaining >= limits.min_long_polling:
        return remaining
    new = caller.version >= _POLLING_CODE_SINCE
    raise CallRefused(
        d.Code.ILLEGAL_POLLING_TIME if new else d.Code.BAD_REQUEST,
        "The deadline time remaining is not enough for polling, please check network condition",
    )


def _subscription(topic: str, expression: d.FilterExpression) -> Subscription:
    kind = SQL92 if expression.type == d.FilterType.SQL else TAG
    try:
        return subscribe(topic, expression.expression, kind)
    except FilterSyntaxError as error:
        raise CallRefused(d.Code.ILLEGAL_FILTER_EXPRESSION, str(error)) from error


async def _broker(state: ProxyState, topic: str, named: str) -> str:
    """Return the broker that the client names, or any that the topic can be read from."""
    known = await state.cluster.route(topic)
    brokers = sorted({queue.broker_name for queue in known.subscribe_queues})
    if not brokers:
        raise CallRefused(d.Code.FORBIDDEN, "no readable queue")
    return named if named in brokers else state.cluster.session.random.choice(brokers)


async def _pop(state: ProxyState, wanted: Receive) -> PopResult:
    """Pop messages; if the client hangs up meanwhile, they are made visible again soon."""
    ordered = wanted.config.consume_message_orderly
    requests = PopRequests(state.cluster.session, wanted.group, ordered=ordered, from_first=False)
    popping = state.tasks.spawn(
        requests.pop(
            MessageQueue(wanted.topic, wanted.broker, ANY_QUEUE),
            wanted.subscription,
            wanted.topic,
            most=wanted.most,
            invisible=wanted.hidden,
            wait=wanted.wait,
            attempt=wanted.attempt,
        ),
        "pop",
    )
    try:
        return await asyncio.shield(popping)
    except asyncio.CancelledError:
        popping.add_done_callback(lambda done: _abandoned(state, wanted, done))
        raise


def _abandoned(state: ProxyState, wanted: Receive, popping: asyncio.Task[PopResult]) -> None:
    if not popping.cancelled() and popping.exception() is None:
        _reveal(state, wanted, popping.result().messages)


def _reveal(state: ProxyState, wanted: Receive, messages: list[ReceivedMessage]) -> None:
    for message in messages:
        receipt = receipt_of(message)
        if receipt is not None:
            revealing = state.renewals.reveal(wanted.group, wanted.topic, receipt)
            state.tasks.spawn(revealing, "release of an undelivered message")


def _kept(
    state: ProxyState, wanted: Receive, messages: list[ReceivedMessage]
) -> list[ReceivedMessage]:
    """Return the messages for the client; others are acknowledged, or go to the dead letters.

    Brokers select by the hash of a tag, so another tag may come through.
    """
    kept = []
    tags, most = wanted.subscription.tags_set, max_attempts(wanted.config)
    for message in messages:
        receipt = receipt_of(message)
        if receipt is not None and tags and message.tag not in tags:
            state.tasks.spawn(_settle(_ack(state, wanted, receipt)), "ack of an unwanted message")
        elif receipt is not None and message.reconsume_times >= most:
            ended = dead_letter(state, wanted.topic, wanted.group, receipt, message.message_id)
            state.tasks.spawn(_settle(ended), "dead letter")
        else:
            kept.append(message)
    return kept


async def _ack(state: ProxyState, wanted: Receive, receipt: Receipt) -> None:
    requests = PopRequests(state.cluster.session, wanted.group, ordered=False, from_first=False)
    await requests.ack(receipt.handle.broker_name, [(wanted.topic, receipt.handle)])


async def _settle(work: Awaitable[None]) -> None:
    try:
        await work
    except (CallRefused, MQError) as error:
        logger.warning('settling a message failed: error="%s"; it is redelivered later', error)


def _renewed(
    state: ProxyState, caller: Caller, wanted: Receive, messages: list[ReceivedMessage]
) -> None:
    """Keep messages hidden until the client acknowledges them; raises `CallRefused` if it left."""
    if state.clients.get(caller.client_id) is None:
        _reveal(state, wanted, messages)
        text = f"The client [{caller.client_id}] is disconnected."
        raise CallRefused(d.Code.MESSAGE_NOT_FOUND, text)
    for message in messages:
        receipt = receipt_of(message)
        if receipt is not None:
            state.renewals.add(caller.client_id, wanted.group, wanted.topic, receipt)


def _empty(result: PopResult) -> d.Status:
    if result.full:
        return status(d.Code.TOO_MANY_REQUESTS, "polling full")
    found = "no match message" if result.messages else "no new message"
    return status(d.Code.MESSAGE_NOT_FOUND, found)


async def _delivery(
    state: ProxyState, caller: Caller, wanted: Receive, messages: list[ReceivedMessage]
) -> AsyncIterator[s.ReceiveMessageResponse | bytes]:
    sent = 0
    try:
        yield s.ReceiveMessageResponse(status=OK)
        for response in received(messages, wanted.hidden):
            yield response
            sent += 1
    finally:
        left = messages[sent:]
        for message in left:
            receipt = receipt_of(message)
            if receipt is not None and wanted.renew:
                state.renewals.forget(caller.client_id, wanted.group, receipt)
        _reveal(state, wanted, left)
