"""The service behind a proxy's port: its methods, its clients, its timers.

Owns which function serves each of RocketMQ's methods, and how its errors become responses.
Importing this file loads protobuf's library and the messages, so `server` does it late.
"""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from pocketmq.client.clock import Clock, new_random
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError
from pocketmq.proxy import methods, reflection
from pocketmq.proxy.access import AccessGate
from pocketmq.proxy.cached_cluster import CachedCluster
from pocketmq.proxy.calls import clients, offsets, receiving, routing, sending, settling
from pocketmq.proxy.calls.plain_acks import PlainAcks
from pocketmq.proxy.calls.plain_receives import PlainReceives
from pocketmq.proxy.calls.plain_sends import PlainSendCalls
from pocketmq.proxy.calls.shortcuts import Shortcuts
from pocketmq.proxy.clients import Clients
from pocketmq.proxy.health import ProxyHealth
from pocketmq.proxy.methods import CallFailed, Exchange, GrpcCode, Method, MethodKind, Methods
from pocketmq.proxy.renewals import Renewals
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.target_queues import TargetQueues
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.limits import ProxyAccess, ProxyLimits
from pocketmq.proxy.translation.refusals import CallRefused, status, status_of
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s
from pocketmq.proxy.wire.schema import POOL, SERVICE

logger = logging.getLogger("pocketmq.proxy")

_SWEEP = 5.0

Unary: TypeAlias = Callable[[ProxyState, Caller, Any], Awaitable[Any]]
Streaming: TypeAlias = Callable[[ProxyState, Caller, Any, float | None], AsyncIterator[Any]]
"""Yields responses, or their bytes."""
Admit: TypeAlias = Callable[[Caller, Any], Awaitable[None]]
"""Raises `CallRefused` if a client may not make a request."""

_ONE_TO_ONE: dict[str, Unary] = {
    "QueryRoute": routing.query_route,
    "Heartbeat": clients.heartbeat,
    "SendMessage": sending.send_message,
    "QueryAssignment": routing.query_assignment,
    "AckMessage": settling.ack_message,
    "ForwardMessageToDeadLetterQueue": settling.forward_to_dead_letters,
    "UpdateOffset": offsets.update_offset,
    "GetOffset": offsets.get_offset,
    "QueryOffset": offsets.query_offset,
    "EndTransaction": sending.end_transaction,
    "NotifyClientTermination": clients.notify_termination,
    "ChangeInvisibleDuration": settling.change_invisible_duration,
    "RecallMessage": sending.recall_message,
}
_SHORT: dict[str, type[PlainSendCalls] | type[PlainAcks]] = {
    "SendMessage": PlainSendCalls,
    "AckMessage": PlainAcks,
}
_RECEIVE = "ReceiveMessage"
_ONE_TO_MANY: dict[str, Streaming] = {
    _RECEIVE: receiving.receive_message,
    "PullMessage": offsets.pull_message,
}


def service_methods(
    state: ProxyState, admit: Admit, shortcuts: Shortcuts | None, *, short_ways: bool
) -> Methods:
    """Return the methods of RocketMQ's service.

    With `short_ways`, plain calls need no task; that is where `admit` accepts all.
    """
    found = {}
    for method in POOL.FindServiceByName(SERVICE).methods:
        request = message_factory.GetMessageClass(method.input_type)
        response = message_factory.GetMessageClass(method.output_type)
        calls = _Calls(state, admit, request, response)
        name = method.name
        if name == "Telemetry":
            served = Method(MethodKind.BOTH, calls.telemetry)
        elif name in _ONE_TO_MANY:
            plain = PlainReceives(state, calls.respond_many)
            begin = plain.begin if short_ways and name == _RECEIVE else None
            served = Method(MethodKind.MANY, calls.many(_ONE_TO_MANY[name]), begin=begin)
        else:
            short = calls.short_way(name, shortcuts) if short_ways else None
            served = Method(MethodKind.ONE, calls.one(_ONE_TO_ONE.get(name, _not_served)), short)
        found[f"/{SERVICE}/{name}"] = served
    return found


async def _not_served(_: ProxyState, __: Caller, request: Any) -> Any:
    """Refuse the one call of Apache's proxy that this one lacks: SyncLiteSubscription."""
    name = type(request).__name__.removesuffix("Request")
    raise CallRefused(
        d.Code.NOT_IMPLEMENTED, f"{name} is not supported: there are no lite topics here"
    )


def _grpc_code(code: "d.Code") -> GrpcCode:
    """Return gRPC's own code of a stream that ends with an error."""
    if code == d.Code.TOO_MANY_REQUESTS:
        return GrpcCode.RESOURCE_EXHAUSTED
    refused = code < d.Code.INTERNAL_ERROR
    return GrpcCode.INVALID_ARGUMENT if refused else GrpcCode.INTERNAL


class _Calls:
    """The calls of one method, from bytes to responses."""

    def __init__(
        self, state: ProxyState, admit: Admit, request: type[Any], response: type[Any]
    ) -> None:
        self._state = state
        self._admit = admit
        self._request = request
        self._response = response

    def one(self, serve: Unary) -> methods.Unary:
        async def answer(raw: bytes, call: methods.Call) -> bytes:
            async def served() -> Any:
                caller = call.caller()
                request = self._read(raw)
                await self._admit(caller, request)
                return await serve(self._state, caller, request)

            return await self.respond(served())

        return answer

    async def respond(self, work: Awaitable[Any]) -> bytes:
        """Return the bytes of a response, also of one that an error becomes."""
        try:
            response = await work
        except Exception as error:  # noqa: BLE001 - the edge: every error becomes a status
            response = self._response(status=self._failure(error))
        return bytes(response.SerializeToString())

    def short_way(self, name: str, shortcuts: Shortcuts | None) -> methods.ShortWay | None:
        """Return how plain calls of a method are served without a task."""
        short = _SHORT.get(name)
        return None if short is None else short(self._state, self.respond, shortcuts)

    def many(self, serve: Streaming) -> methods.Streaming:
        def answer(raw: bytes, call: methods.Call) -> AsyncGenerator[bytes, None]:
            async def served() -> AsyncIterator[Any]:
                caller = call.caller()
                request = self._read(raw)
                await self._admit(caller, request)
                async for each in serve(self._state, caller, request, call.time_left()):
                    yield each

            return self.respond_many(served())

        return answer

    async def respond_many(self, responses: AsyncIterator[Any]) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of responses, also of one that an error becomes."""
        try:
            async for each in responses:
                yield each if type(each) is bytes else each.SerializeToString()
        except Exception as error:  # noqa: BLE001 - the edge: every error becomes a status
            yield self._response(status=self._failure(error)).SerializeToString()

    async def telemetry(self, exchange: Exchange) -> None:
        async def write(command: s.TelemetryCommand) -> None:
            await exchange.write(command.SerializeToString())

        try:
            caller = exchange.caller()
            most = self._state.limits.telemetry_per_client
            with self._state.clients.streaming(caller.client_id, most):
                commands = self._admitted(caller, exchange.messages())
                await clients.telemetry(self._state, caller, commands, write)
        except (CallRefused, MQError) as error:
            code = error.code if isinstance(error, CallRefused) else d.Code.INTERNAL_ERROR
            if code in (d.Code.UNAUTHORIZED, d.Code.CLIENT_ID_REQUIRED):
                await write(s.TelemetryCommand(status=status_of(error)))
                return
            text = error.message if isinstance(error, CallRefused) else str(error)
            text = f"process client telemetryCommand failed. {text}"
            raise CallFailed(_grpc_code(code), text) from None

    async def _admitted(
        self, caller: Caller, commands: AsyncIterator[bytes]
    ) -> AsyncIterator[s.TelemetryCommand]:
        async for raw in commands:
            command = self._read(raw)
            await self._admit(caller, command)
            yield command

    def _read(self, raw: bytes) -> Any:
        try:
            return self._request.FromString(raw)
        except DecodeError as error:
            text = f"the request is not a valid {self._request.DESCRIPTOR.name}"
            raise CallRefused(d.Code.BAD_REQUEST, text) from error

    def _failure(self, error: Exception) -> d.Status:
        if isinstance(error, (CallRefused, MQError)):
            return status_of(error)
        logger.error("call failed: request=%s", self._request.DESCRIPTOR.name, exc_info=error)
        return status(d.Code.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}")


class Service:
    """All methods of a proxy. Belongs to one event loop."""

    def __init__(
        self, session: Session, limits: ProxyLimits, access: ProxyAccess, clock: Clock
    ) -> None:
        random = new_random()
        self._tasks = Tasks(f"{session.client_id}: proxy")
        self._clients = Clients(session.options, clock, random)
        self._renewals = Renewals(session, self._tasks, limits, clock)
        self._clients.on_gone = self._renewals.release
        self._health = ProxyHealth()
        state = ProxyState(
            cluster=CachedCluster(session),
            clients=self._clients,
            renewals=self._renewals,
            choice=TargetQueues(random),
            tasks=self._tasks,
            limits=limits,
            clock=clock,
        )
        gate = AccessGate(session, access)
        short_ways = not access.authenticate
        self.shortcuts = Shortcuts.chosen(state) if short_ways else None
        """What plain calls need in the core; None without it."""
        own = service_methods(state, gate.admit, self.shortcuts, short_ways=short_ways)
        self.methods: Methods = {**own, **self._health.methods, **reflection.methods()}
        """What a port serves."""
        period = limits.renew_interval
        self._tasks.every(period, self._renewals.renew_due, "renewals", first_after=period)

        async def sweep() -> None:
            await self._clients.drop_expired(limits.client_expiry)

        self._tasks.every(_SWEEP, sweep, "expiry of clients", first_after=_SWEEP)

    def leave(self) -> None:
        """Report to health checks that it serves no more."""
        self._health.leave()

    async def close(self) -> None:
        """Unregister all clients, after the end of their calls."""
        await self._clients.close()
        await self._renewals.released()
        await self._tasks.stop()
