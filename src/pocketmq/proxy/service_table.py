"""The service's methods: which function serves each, and how its errors become responses.

Bridges gRPC and the calls; with `grpc_port` and `health` all that uses grpcio.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import grpc
import grpc.aio
from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from pocketmq.errors import MQError
from pocketmq.proxy.calls import clients, offsets, receiving, routing, sending, settling
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation.caller import Caller, peer_address, read_caller
from pocketmq.proxy.translation.refusals import CallRefused, status, status_of
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s
from pocketmq.proxy.wire.schema import POOL, SERVICE

logger = logging.getLogger("pocketmq.proxy")

Unary: TypeAlias = Callable[[ProxyState, Caller, Any], Awaitable[Any]]
Streaming: TypeAlias = Callable[[ProxyState, Caller, Any, float | None], AsyncIterator[Any]]
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
_ONE_TO_MANY: dict[str, Streaming] = {
    "ReceiveMessage": receiving.receive_message,
    "PullMessage": offsets.pull_message,
}
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


def generic_handler(state: ProxyState, admit: Admit) -> grpc.GenericRpcHandler:
    """Return the service for a gRPC server."""
    handlers = {}
    for method in POOL.FindServiceByName(SERVICE).methods:
        request = message_factory.GetMessageClass(method.input_type)
        response = message_factory.GetMessageClass(method.output_type)
        # Requests are read here and not by gRPC, which logs a traceback for each it cannot read.
        codec = {"response_serializer": response.SerializeToString}
        calls = _Calls(state, admit, request, response)
        name = method.name
        if name == "Telemetry":
            handlers[name] = grpc.stream_stream_rpc_method_handler(calls.telemetry, **codec)
        elif name in _ONE_TO_MANY:
            many = calls.many(_ONE_TO_MANY[name])
            handlers[name] = grpc.unary_stream_rpc_method_handler(many, **codec)
        else:
            one = calls.one(_ONE_TO_ONE.get(name, _not_served))
            handlers[name] = grpc.unary_unary_rpc_method_handler(one, **codec)
    return grpc.method_handlers_generic_handler(SERVICE, handlers)


async def _not_served(_: ProxyState, __: Caller, request: Any) -> Any:
    """Refuse the one call of Apache's proxy that this one lacks: SyncLiteSubscription."""
    name = type(request).__name__.removesuffix("Request")
    raise CallRefused(
        d.Code.NOT_IMPLEMENTED, f"{name} is not supported: there are no lite topics here"
    )


def _grpc_code(code: "d.Code") -> grpc.StatusCode:
    """Return gRPC's own code of a stream that ends with an error."""
    if code == d.Code.TOO_MANY_REQUESTS:
        return grpc.StatusCode.RESOURCE_EXHAUSTED
    refused = code < d.Code.INTERNAL_ERROR
    return grpc.StatusCode.INVALID_ARGUMENT if refused else grpc.StatusCode.INTERNAL


class _Calls:
    """The calls of one method, from bytes to responses."""

    def __init__(
        self, state: ProxyState, admit: Admit, request: type[Any], response: type[Any]
    ) -> None:
        self._state = state
        self._admit = admit
        self._request = request
        self._response = response

    def one(self, serve: Unary) -> Callable[[bytes, _Context], Awaitable[Any]]:
        async def call(raw: bytes, context: _Context) -> Any:
            try:
                caller = self._caller(context)
                request = self._read(raw)
                await self._admit(caller, request)
                return await serve(self._state, caller, request)
            except Exception as error:  # noqa: BLE001 - the edge: every error becomes a status
                return self._response(status=self._failure(error))

        return call

    def many(self, serve: Streaming) -> Callable[[bytes, _Context], AsyncIterator[Any]]:
        async def call(raw: bytes, context: _Context) -> AsyncIterator[Any]:
            try:
                caller = self._caller(context)
                request = self._read(raw)
                await self._admit(caller, request)
                async for each in serve(self._state, caller, request, context.time_remaining()):
                    yield each
            except Exception as error:  # noqa: BLE001 - the edge: every error becomes a status
                yield self._response(status=self._failure(error))

        return call

    async def telemetry(self, commands: AsyncIterator[bytes], context: _Context) -> None:
        try:
            caller = self._caller(context)
            most = self._state.limits.telemetry_per_client
            with self._state.clients.streaming(caller.client_id, most):
                await clients.telemetry(
                    self._state, caller, self._admitted(caller, commands), context.write
                )
        except (CallRefused, MQError) as error:
            code = error.code if isinstance(error, CallRefused) else d.Code.INTERNAL_ERROR
            if code in (d.Code.UNAUTHORIZED, d.Code.CLIENT_ID_REQUIRED):
                await context.write(s.TelemetryCommand(status=status_of(error)))
                return
            text = error.message if isinstance(error, CallRefused) else str(error)
            # Not `abort`, whose exception and call would keep each other until a collection.
            context.set_code(_grpc_code(code))
            context.set_details(f"process client telemetryCommand failed. {text}")

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

    def _caller(self, context: _Context) -> Caller:
        address = self._state.address_of(peer_address(context.peer()))
        if address is None:
            text = "the connection was not made to the proxy's own port"
            raise CallRefused(d.Code.FORBIDDEN, text)
        return read_caller(context.invocation_metadata() or (), address)
