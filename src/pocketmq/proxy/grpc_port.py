"""gRPC's own port: opened, and opened again when a client's bytes have ended it.

One request whose path is not UTF-8 makes grpcio's server shut down (seen with 1.85). Such a client
costs the others their connections, which they make anew, and no more.
"""

import asyncio
import logging
from collections.abc import Callable

import grpc
import grpc.aio

from pocketmq.net.address import Address
from pocketmq.proxy.health import ProxyHealth, add_health
from pocketmq.proxy.translation.limits import ProxyLimits

logger = logging.getLogger("pocketmq.proxy")

_RETRY = 1.0


class GrpcPort:
    """A gRPC server on one address. Belongs to one event loop."""

    def __init__(self, handler: grpc.GenericRpcHandler, limits: ProxyLimits) -> None:
        self._handler = handler
        self._options = [
            ("grpc.max_receive_message_length", limits.largest_request),
            ("grpc.max_concurrent_streams", limits.streams_per_connection),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ]
        self._server: grpc.aio.Server | None = None
        self._health: ProxyHealth | None = None
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

    async def leave(self) -> None:
        """Report to health checks that it serves no more."""
        if self._health is not None:
            await self._health.leave()

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
        self._health = await add_health(server)
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
