"""Listening: accept connections within limits, and let all of them go cleanly."""

import asyncio
import logging
import socket

from pocketmq.errors import ConnectionLost, ListenFailed
from pocketmq.net.address import Address
from pocketmq.net.connection import Connection
from pocketmq.net.limits import Limits
from pocketmq.net.owner import Owner
from pocketmq.net.reasons import reason_of
from pocketmq.net.roster import Roster
from pocketmq.net.shared import Shared
from pocketmq.protocol.command import Command

logger = logging.getLogger("pocketmq.net")

_PORT_TRIES = 5


class Server:
    """Listening sockets and their connections; hands what they say to `owner`."""

    def __init__(self, owner: Owner, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.connections = Roster()
        self._owner = owner
        self._shared = Shared(self.limits)
        self._listening: list[asyncio.Server] = []
        self._closed = False
        self._full = False

    async def listen(self, host: str, port: int) -> Address:
        """Start accepting; port 0 takes any free one. Gives the address listened on.

        An empty host means every interface. May be called again for a further address.
        Raises `ListenFailed` if the port is taken or the host is not ours.
        """
        try:
            listening = await self._bind(host, port)
        except (OSError, UnicodeError) as error:
            raise ListenFailed(str(Address(host, port)), reason_of(error)) from error
        self._listening.append(listening)
        name = listening.sockets[0].getsockname()
        return Address(name[0], name[1])

    def stop_listening(self) -> None:
        """Accept nobody new; those who are here stay."""
        for listening in self._listening:
            listening.close()
        self._listening.clear()

    async def close(self, grace: float = 1.0) -> None:
        """Stop listening and close everything; queued answers may leave for `grace` seconds."""
        self._closed = True
        self.stop_listening()
        await self.connections.close(grace)

    async def _bind(self, host: str, port: int) -> asyncio.Server:
        """Listen on all addresses of a host under one port, also if the kernel chooses it."""
        loop = asyncio.get_running_loop()
        backlog = self.limits.backlog
        for _ in range(_PORT_TRIES):
            listening = await loop.create_server(self._accept, host, port, backlog=backlog)
            ports = {sock.getsockname()[1] for sock in listening.sockets}
            if len(ports) == 1:
                return listening
            # One free port each: take the first of them for all, if the others are free there.
            listening.close()
            try:
                return await loop.create_server(self._accept, host, min(ports), backlog=backlog)
            except OSError:
                continue
        raise OSError(f"no port is free on all addresses of {host}")

    def _accept(self) -> asyncio.BaseProtocol:
        """Make the protocol of a socket just accepted: the place for TLS and PROXY headers."""
        return Connection(self, self._shared, asyncio.get_running_loop())

    # Owner of its connections: counts them, passes the rest on.

    def connection_opened(self, connection: Connection) -> None:
        """Take a connection in, or turn it away when there are too many."""
        if self._closed:
            connection.abort(ConnectionLost(connection.remote_address, "the server is closed"))
            return
        if len(self.connections) >= self.limits.connections:
            if not self._full:  # once, not for everyone who comes
                logger.warning("%d connections: further ones are closed", len(self.connections))
            self._full = True
            connection.abort(ConnectionLost(connection.remote_address, "too many connections"))
            return
        self.connections.add(connection)
        self._owner.connection_opened(connection)

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Pass a batch on."""
        self._owner.requests_received(connection, requests)

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Forget a connection."""
        if connection in self.connections:
            self.connections.discard(connection)
            self._full = False
            self._owner.connection_closed(connection, cause)


def reachable_host(listen_host: str) -> str:
    """Give the address others can use when a server listens on every interface."""
    if listen_host not in {"0.0.0.0", "::", ""}:  # noqa: S104 - compared, not bound
        return listen_host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # documentation range; UDP connect sends nothing
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
