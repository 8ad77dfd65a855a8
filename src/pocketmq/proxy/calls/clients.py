"""Heartbeats, settings and departures of clients, and the commands sent to them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from pocketmq.errors import FilterSyntaxError, MQError
from pocketmq.model import ConsumeType, GroupConfig, Subscription
from pocketmq.model.groups import SQL92, TAG
from pocketmq.protocol.filter.subscribe import subscribe
from pocketmq.proxy.clients import GrpcClient, TelemetryStream
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation import checks
from pocketmq.proxy.translation.caller import Caller, client_kind
from pocketmq.proxy.translation.refusals import OK, CallRefused
from pocketmq.proxy.translation.settings import CONSUMERS, PRODUCERS, for_consumer, for_producer
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

_KINDS = {
    d.ClientType.PUSH_CONSUMER: ConsumeType.CONSUME_PASSIVELY,
    d.ClientType.SIMPLE_CONSUMER: ConsumeType.CONSUME_ACTIVELY,
}


async def heartbeat(
    state: ProxyState, caller: Caller, request: s.HeartbeatRequest
) -> s.HeartbeatResponse:
    """Take note that a client lives; it must have sent its settings before."""
    client = _known(state.clients.seen(caller.client_id))
    if client.settings.client_type in CONSUMERS:
        checks.group_name(request.group)
    return s.HeartbeatResponse(status=OK)


async def notify_termination(
    state: ProxyState, caller: Caller, request: s.NotifyClientTerminationRequest
) -> s.NotifyClientTerminationResponse:
    """Unregister a client; what it held is redelivered soon."""
    client = _known(await state.clients.remove(caller.client_id))
    if client.settings.client_type in CONSUMERS:
        checks.group_name(request.group)
    return s.NotifyClientTerminationResponse(status=OK)


def _known(client: GrpcClient | None) -> GrpcClient:
    code = d.Code.UNRECOGNIZED_CLIENT_TYPE
    if client is None:
        raise CallRefused(code, "cannot find client settings for this client")
    kind = client.settings.client_type
    if kind not in PRODUCERS and kind not in CONSUMERS:
        raise CallRefused(code, _type_name(kind))
    return client


async def telemetry(
    state: ProxyState,
    caller: Caller,
    commands: AsyncIterator[s.TelemetryCommand],
    write: Callable[[s.TelemetryCommand], Awaitable[object]],
) -> None:
    """Serve a Telemetry stream until the client ends it. Raises `CallRefused` for bad settings."""
    reader = asyncio.current_task()
    assert reader is not None

    async def write_all() -> None:
        while True:
            await write(await stream.next())

    def hang_up(_: object = None) -> None:
        reader.cancel()

    stream = TelemetryStream(hang_up)
    writer = state.tasks.spawn(write_all(), f"telemetry of {caller.client_id}")
    writer.add_done_callback(hang_up)
    try:
        async for command in commands:
            await _take(state, caller, stream, command)
    finally:
        writer.remove_done_callback(hang_up)
        writer.cancel()
        client = state.clients.get(caller.client_id)
        if client is not None:
            client.closed(stream)


async def _take(
    state: ProxyState, caller: Caller, stream: TelemetryStream, command: s.TelemetryCommand
) -> None:
    kind = command.WhichOneof("command")
    if kind == "settings":
        settings = await _settle(state, caller, stream, command.settings)
        stream.send(s.TelemetryCommand(status=OK, settings=settings))
    elif kind == "thread_stack_trace":
        state.clients.answers.answer(command.thread_stack_trace.nonce, command)
    elif kind == "verify_message_result":
        state.clients.answers.answer(command.verify_message_result.nonce, command)


async def _settle(
    state: ProxyState, caller: Caller, stream: TelemetryStream, reported: d.Settings
) -> d.Settings:
    """Register a client by its settings, and return them completed."""
    side = reported.WhichOneof("pub_sub")
    if side is None:
        text = "there is no publishing or subscription data in settings"
        raise CallRefused(d.Code.BAD_REQUEST, text)
    if side == "publishing":
        topics = [checks.topic_name(topic) for topic in reported.publishing.topics]
        client = await state.clients.join(caller.client_id, client_kind(caller))
        client.opened(stream)
        client.produces(topics)
        completed = for_producer(reported, state.limits)
    else:
        group = checks.group_name(reported.subscription.group)
        kind = _KINDS.get(reported.client_type)
        if kind is None:
            text = f"client type {_type_name(reported.client_type)} is not supported"
            raise CallRefused(d.Code.UNRECOGNIZED_CLIENT_TYPE, text)
        subscriptions = [_subscription(each) for each in reported.subscription.subscriptions]
        config = await _group(state, group)
        client = await state.clients.join(caller.client_id, client_kind(caller))
        client.opened(stream)
        client.consumes(group, kind, subscriptions)
        completed = for_consumer(reported, config, state.limits)
    client.settings = completed
    return completed


async def _group(state: ProxyState, group: str) -> GroupConfig:
    """Return the set-up of a group; the default one if it does not exist, as Apache's does."""
    try:
        return await state.cluster.group(group)
    except MQError:
        return GroupConfig(group_name=group)


def _subscription(entry: d.SubscriptionEntry) -> Subscription:
    kind = SQL92 if entry.expression.type == d.FilterType.SQL else TAG
    try:
        return subscribe(checks.topic_name(entry.topic), entry.expression.expression, kind)
    except FilterSyntaxError as error:
        text = "expression format is not correct"
        raise CallRefused(d.Code.ILLEGAL_FILTER_EXPRESSION, text) from error


def _type_name(kind: int) -> str:
    try:
        return str(d.ClientType.Name(kind))
    except ValueError:
        return str(kind)
