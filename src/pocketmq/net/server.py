"""A listening server: accepts connections within limits, and closes all of them gracefully."""

import asyncio
import logging
import socket
import ssl
from typing import Any

from pocketmq.errors import ConnectionLost, ListenFailed
from pocketmq.net.address import Address
from pocketmq.net.budget import MemoryBudget
from pocketmq.net.connection import Connection
from pocketmq.net.handshake import Handshake
from pocketmq.net.inbox import Owner
from pocketmq.net.limits import Limits
from pocketmq.net.listener import Arrivals, Listener, bind
from pocketmq.net.reasons import reason_of
from pocketmq.net.shared import OpenConnections, Shared
from pocketmq.protocol import Command

logger = logging.getLogger("pocketmq.net")


class Server:
    """Listening sockets and their connections; hands their requests to `owner`."""

    def __init__(self, owner: Owner, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.connections = OpenConnections()
        self._owner = owner
        self._shared = Shared(
            self.limits, MemoryBudget(self.limits.memory, self.limits.frame_stall)
        )
        self._listeners: list[Listener] = []
        self._handshake: Handshake | None = None
        self._closed = False
        self._arrivals = Arrivals(
            self._welcome, self.connections.__len__, self.limits.connections, logger
        )

    def guard(self, handshake: Handshake | None) -> None:
        """Let new connections pass a handshake first: TLS, load balancers."""
        self._handshake = handshake

    def distrust(self) -> None:
        """Limit peers that have not authenticated to a quarter of the memory.

        To be called before the first connection; `Connection.trust` ends it for one peer.
        """
        memory, stall = self.limits.memory, self.limits.frame_stall
        self._shared.strangers = MemoryBudget(memory // 4, stall)
        self._shared.budget = MemoryBudget(memory - memory // 4, stall)

    async def listen(self, host: str, port: int) -> Address:
        """Start accepting, and return the address listened on; port 0 takes any free one.

        An empty host means every interface. May be called again for a further address.
        Raises `ListenFailed` if the port is taken or the host is not ours.
        """
        loop = asyncio.get_running_loop()
        try:
            sockets = await bind(host, port, self.limits.backlog)
        except (OSError, UnicodeError) as error:
            raise ListenFailed(str(Address(host, port)), reason_of(error)) from error
        listener = Listener(sockets, self._arrivals.take, loop)
        self._listeners.append(listener)
        return listener.address

    def stop_listening(self) -> None:
        """Accept no new connections; open ones stay."""
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    async def close(self, grace: float = 1.0) -> None:
        """Stop listening and close everything; queued answers may leave for `grace` seconds."""
        self._closed = True
        self.stop_listening()
        # A handshake waits long for the first byte of a silent peer.
        await self._arrivals.end(cancel=self._handshake is not None)
        await self.connections.close(grace)
        self._shared.close()

    async def _welcome(self, peer: socket.socket) -> None:
        """Make a connection of a socket."""
        loop = asyncio.get_running_loop()
        connection = Connection(self, self._shared, loop)
        context: ssl.SSLContext | None = None
        try:
            if self._handshake is not None:
                context, connection.remote_address = await self._handshake.admit(peer)
            await loop.connect_accepted_socket(lambda: connection, peer, **self._speaking(context))
        except (
            OSError,
            ConnectionLost,
        ) as error:  # closed by the peer, or refused
            level = logging.DEBUG if self._handshake is None else logging.INFO
            logger.log(level, "accepting a connection failed: %s", reason_of(error))
            peer.close()
        except asyncio.CancelledError:
            peer.close()
            raise

    def _speaking(self, context: ssl.SSLContext | None) -> dict[str, Any]:
        """Return asyncio's TLS options; none for a plain connection."""
        if context is None:
            return {}
        limits = self.limits
        return {
            "ssl": context,
            "ssl_handshake_timeout": limits.handshake,
            "ssl_shutdown_timeout": limits.linger,
        }

    # Owner of its connections: counts them, passes the rest on.

    def connection_opened(self, connection: Connection) -> None:
        """Add a connection."""
        if self._closed:
            connection.abort(ConnectionLost(connection.remote_address, "the server is closed"))
            return
        self.connections.add(connection)
        self._owner.connection_opened(connection)

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Pass a batch on."""
        self._owner.requests_received(connection, requests)

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Remove a connection."""
        if connection in self.connections:
            self.connections.discard(connection)
            self._arrivals.one_left()
            self._owner.connection_closed(connection, cause)


def reachable_host(listen_host: str) -> str:
    """Return the address that other machines can use when a server listens on every interface."""
    if listen_host not in {"0.0.0.0", "::", ""}:  # noqa: S104 - compared, not bound
        return listen_host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # documentation range; UDP connect sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
