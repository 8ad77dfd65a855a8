"""The port without the native core: grpcio's own, opened again when a client's bytes have ended it.

One request whose path is not UTF-8 makes grpcio's server shut down (seen with 1.85). Such a client
costs the others their connections, which they make anew, and no more.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import grpc
import grpc.aio

from pocketmq.net.address import Address
from pocketmq.proxy.methods import CallFailed, GrpcCode, Method, MethodKind, Methods
from pocketmq.proxy.translation.caller import FIELDS, Caller, peer_address, read_caller
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d

logger = logging.getLogger("pocketmq.proxy")

_RETRY = 1.0
_CODES = {code.value[0]: code for code in grpc.StatusCode}

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
AddressOf: TypeAlias = Callable[[str], str | None]
"""Returns the address of a call's client, by that of its connection; None if it has none."""


class GrpcPort:
    """A gRPC server on one address. Belongs to one event loop."""

    def __init__(self, methods: Methods, limits: ProxyLimits, address_of: AddressOf) -> None:
        self._handler = _Handler(methods, address_of)
        self._options = [
            ("grpc.max_receive_message_length", limits.largest_request),
            ("grpc.max_concurrent_streams", limits.streams_per_connection),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ]
        self._server: grpc.aio.Server | None = None
        self._watching: asyncio.Task[None] | None = None
        self._ended: asyncio.Task[bool] | None = None

    async def open(self, address: Address, moved: Callable[[int], None]) -> int:
        """Listen, and return the port; `moved` is called with it now and each time it changes.

        Raises RuntimeError if it cannot listen there.
        """
        port = await self._listen(address)
        moved(port)
        self._watching = asyncio.create_task(self._watch(address, moved))
        return port

    async def close(self, grace: float) -> None:
        """End all calls; does nothing before `open` or a second time."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])
        server, self._server = self._server, None
        if server is not None:
            await server.stop(grace)
        if self._ended is not None:
            await asyncio.wait([self._ended])

    async def _listen(self, address: Address) -> int:
        self._server = server = grpc.aio.server(options=self._options)
        server.add_generic_rpc_handlers((self._handler,))
        try:
            port: int = server.add_insecure_port(str(address))
        finally:
            await server.start()  # one that never ran cannot be stopped, and keeps its threads
        return port

    async def _watch(self, address: Address, moved: Callable[[int], None]) -> None:
        while self._server is not None:
            # A task of its own: to cancel it would cancel the end of the server itself.
            self._ended = ended = asyncio.create_task(self._server.wait_for_termination())
            await asyncio.wait([ended])
            text = 'gRPC server ended by a malformed request: error="%s"; listening again'
            logger.warning(text, ended.exception())
            await self._server.stop(None)  # which ends the calls that it has left
            while True:
                try:
                    moved(await self._listen(address))
                    break
                except RuntimeError as error:
                    logger.warning('listening failed: error="%s"; retrying in %g s', error, _RETRY)
                    await asyncio.sleep(_RETRY)


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
    """All methods, as grpcio calls them."""

    def __init__(self, methods: Methods, address_of: AddressOf) -> None:
        self._handlers = {path: _handler(each, address_of) for path, each in methods.items()}

    def service(self, handler_call_details: Any) -> Any:
        """Return what handles a call; None if nothing does."""
        return self._handlers.get(handler_call_details.method)


def _handler(method: Method, address_of: AddressOf) -> Any:
    async def one(raw: bytes, context: _Context) -> bytes:
        try:
            return bytes(await method.serve(raw, _AioCall(context, address_of)))
        except CallFailed as error:
            _fail(context, error)
            return b""

    async def many(raw: bytes, context: _Context) -> AsyncIterator[bytes]:
        try:
            async for each in method.serve(raw, _AioCall(context, address_of)):
                yield each
        except CallFailed as error:
            _fail(context, error)

    async def both(messages: AsyncIterator[bytes], context: _Context) -> None:
        try:
            await method.serve(_AioCall(context, address_of, messages))
        except CallFailed as error:
            _fail(context, error)

    if method.kind is MethodKind.ONE:
        return grpc.unary_unary_rpc_method_handler(one)
    if method.kind is MethodKind.MANY:
        return grpc.unary_stream_rpc_method_handler(many)
    return grpc.stream_stream_rpc_method_handler(both)


def _fail(context: _Context, error: CallFailed) -> None:
    # Not `abort`, whose exception and call would keep each other until a collection.
    context.set_code(_CODES[GrpcCode(error.code).value])
    context.set_details(error.message)


class _AioCall:
    """A call of grpcio."""

    def __init__(
        self,
        context: _Context,
        address_of: AddressOf,
        messages: AsyncIterator[bytes] | None = None,
    ) -> None:
        self._context = context
        self._address_of = address_of
        self._messages = messages

    def caller(self) -> Caller:
        address = self._address_of(peer_address(self._context.peer()))
        if address is None:
            text = "the connection was not made to the proxy's own port"
            raise CallRefused(d.Code.FORBIDDEN, text)
        metadata = self._context.invocation_metadata() or ()
        texts = {key: value for key, value in metadata if isinstance(value, str)}
        return read_caller([texts.get(name) for name in FIELDS], address)

    def time_left(self) -> float | None:
        left = self._context.time_remaining()
        return None if left is None else float(left)

    def messages(self) -> AsyncIterator[bytes]:
        assert self._messages is not None
        return self._messages

    async def write(self, message: bytes) -> None:
        await self._context.write(message)
