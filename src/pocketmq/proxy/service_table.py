"""The service's methods: which function serves each, and how its errors become responses.

Bridges gRPC and the calls; the only file besides `server` that uses grpcio.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import grpc
import grpc.aio
from google.protobuf import message_factory

from pocketmq.errors import MQError
from pocketmq.proxy.calls import clients, offsets, receiving, routing, sending, settling
from pocketmq.proxy.state import ProxyState
from pocketmq.proxy.translation.caller import Caller, read_caller
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
        codecs = {
            "request_deserializer": request.FromString,
            "response_serializer": response.SerializeToString,
        }
        name = method.name
        if name == "Telemetry":
            work = _telemetry(state, admit)
            handlers[name] = grpc.stream_stream_rpc_method_handler(work, **codecs)
        elif name in _ONE_TO_MANY:
            serve = _many(state, admit, _ONE_TO_MANY[name], response)
            handlers[name] = grpc.unary_stream_rpc_method_handler(serve, **codecs)
        else:
            one = _one(state, admit, _ONE_TO_ONE.get(name, _not_served), response)
            handlers[name] = grpc.unary_unary_rpc_method_handler(one, **codecs)
    return grpc.method_handlers_generic_handler(SERVICE, handlers)


async def _not_served(_: ProxyState, __: Caller, request: Any) -> Any:
    name = type(request).__name__.removesuffix("Request")
    raise CallRefused(d.Code.NOT_IMPLEMENTED, f"{name} is not supported")


def _one(
    state: ProxyState, admit: Admit, serve: Unary, response: type[Any]
) -> Callable[[Any, _Context], Awaitable[Any]]:
    async def call(request: Any, context: _Context) -> Any:
        try:
            caller = _caller(context)
            await admit(caller, request)
            return await serve(state, caller, request)
        except Exception as error:  # noqa: BLE001 - the edge: every error becomes a status
            return response(status=_failure(error, request))

    return call


def _many(
    state: ProxyState, admit: Admit, serve: Streaming, response: type[Any]
) -> Callable[[Any, _Context], AsyncIterator[Any]]:
    async def call(request: Any, context: _Context) -> AsyncIterator[Any]:
        try:
            caller = _caller(context)
            await admit(caller, request)
            async for each in serve(state, caller, request, context.time_remaining()):
                yield each
        except Exception as error:  # noqa: BLE001 - the edge: every error becomes a status
            yield response(status=_failure(error, request))

    return call


def _telemetry(state: ProxyState, admit: Admit) -> Callable[..., Awaitable[None]]:
    async def call(commands: AsyncIterator[s.TelemetryCommand], context: _Context) -> None:
        try:
            caller = _caller(context)
        except CallRefused as error:
            await context.write(s.TelemetryCommand(status=status_of(error)))
            return

        async def admitted() -> AsyncIterator[s.TelemetryCommand]:
            async for command in commands:
                await admit(caller, command)
                yield command

        try:
            await clients.telemetry(state, caller, admitted(), context.write)
        except (CallRefused, MQError) as error:
            if isinstance(error, CallRefused) and error.code == d.Code.UNAUTHORIZED:
                await context.write(s.TelemetryCommand(status=status_of(error)))
                return
            client_error = isinstance(error, CallRefused) and error.code < d.Code.INTERNAL_ERROR
            code = grpc.StatusCode.INVALID_ARGUMENT if client_error else grpc.StatusCode.INTERNAL
            text = error.message if isinstance(error, CallRefused) else str(error)
            # Not `abort`, whose exception and call would keep each other until a collection.
            context.set_code(code)
            context.set_details(f"process client telemetryCommand failed. {text}")

    return call


def _caller(context: _Context) -> Caller:
    return read_caller(context.invocation_metadata() or (), context.peer())


def _failure(error: Exception, request: Any) -> d.Status:
    if isinstance(error, (CallRefused, MQError)):
        return status_of(error)
    logger.error("call failed: request=%s", type(request).__name__, exc_info=error)
    return status(d.Code.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}")
