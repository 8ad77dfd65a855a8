"""What a ReceiveMessage asks for: checked, within limits, and as the pop of a broker.

Whatever needs an answer of the cluster, such as a topic's route, is an argument.
"""

import asyncio

import msgspec

from pocketmq.client.pop.popped import PopResult
from pocketmq.client.pop.questions import ANY_QUEUE
from pocketmq.client.pop.requests import PopRequests
from pocketmq.client.questions.asking import Question
from pocketmq.client.routes import KnownRoute
from pocketmq.errors import FilterSyntaxError
from pocketmq.model import GroupConfig, MessageQueue, Subscription
from pocketmq.model.groups import SQL92, TAG
from pocketmq.protocol.filter.subscribe import subscribe
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation import checks
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

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


class Receiver(msgspec.Struct, frozen=True):
    """Who receives: a group of a topic, for which messages are invisible for a time."""

    topic: str
    group: str
    hidden: float


def consumer_of(state: ProxyState, request: s.ReceiveMessageRequest) -> Receiver:
    """Return who receives; raises `CallRefused`."""
    topic = checks.topic_name(request.message_queue.topic)
    group = checks.group_name(request.group)
    hidden = checks.seconds_of(request.invisible_duration, d.Code.ILLEGAL_INVISIBLE_TIME)
    if request.auto_renew:
        hidden = state.limits.default_invisible_time
    else:
        checks.invisible_seconds(hidden, state.limits, state.limits.min_invisible_time_for_receive)
    return Receiver(topic, group, hidden)


def checked(
    state: ProxyState,
    caller: Caller,
    request: s.ReceiveMessageRequest,
    *,
    remaining: float | None,
    known: tuple[Receiver, GroupConfig, KnownRoute],
) -> Receive:
    """Return a request as it is carried out; raises `CallRefused`.

    Takes note of what the client subscribes to: some clients never report that.
    """
    named, config, route = known
    wanted = Receive(
        named.topic,
        named.group,
        config,
        _subscription(named.topic, request.filter_expression),
        _broker(state, route, request.message_queue.broker.name),
        min(max(1, request.batch_size), _MOST_AT_ONCE),
        named.hidden,
        _polling_time(state, caller, request, remaining),
        request.auto_renew,
        request.attempt_id or None,
    )
    client = state.clients.get(caller.client_id)
    if client is not None:
        client.receives(wanted.group, wanted.subscription)
    return wanted


def pop_of(state: ProxyState, wanted: Receive) -> tuple[PopRequests, Question[PopResult]]:
    """Return the pop for a request, and who asks it."""
    ordered = wanted.config.consume_message_orderly
    requests = PopRequests(state.cluster.session, wanted.group, ordered=ordered, from_first=False)
    question = requests.questions.pop(
        MessageQueue(wanted.topic, wanted.broker, ANY_QUEUE),
        wanted.subscription,
        wanted.topic,
        most=wanted.most,
        invisible=wanted.hidden,
        wait=wanted.wait,
        asked=asyncio.get_running_loop().time(),
        attempt=wanted.attempt,
    )
    return requests, question


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


def _broker(state: ProxyState, known: KnownRoute, named: str) -> str:
    """Return the broker that the client names, or any that the topic can be read from."""
    brokers = sorted({queue.broker_name for queue in known.subscribe_queues})
    if not brokers:
        raise CallRefused(d.Code.FORBIDDEN, "no readable queue")
    return named if named in brokers else state.cluster.session.random.choice(brokers)
