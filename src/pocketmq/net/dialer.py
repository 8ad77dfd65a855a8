"""Connections to others: one for each address, made when first needed, made anew when lost."""

import asyncio
from typing import Any

from pocketmq.errors import ConnectFailed, ConnectionLost, RequestTimedOut
from pocketmq.net.address import parse_address
from pocketmq.net.connection import Connection
from pocketmq.net.inbox import Owner
from pocketmq.net.limits import Limits
from pocketmq.net.reasons import reason_of, untraced
from pocketmq.net.shared import OpenConnections, Shared
from pocketmq.net.tls import Contexts, Tls
from pocketmq.protocol.command import Command


class Dialer:
    """Gives the connection to an address. Callers of one address share one connection."""

    def __init__(self, owner: Owner, limits: Limits | None = None, tls: Tls | None = None) -> None:
        """Take whom to tell, bounds, and how to speak TLS (None: not at all)."""
        self.limits = limits or Limits()
        self.connections = OpenConnections()
        self._owner = owner
        self._shared = Shared(self.limits)
        self._open: dict[str, Connection] = {}
        self._dialling: dict[str, asyncio.Task[Connection | ConnectFailed]] = {}
        self._tls = tls
        self._contexts: Contexts | None = None  # read with the first connection
        self._closed = False

    @property
    def tls(self) -> Tls | None:
        """How it speaks TLS, if it does."""
        return self._tls

    async def connect(self, address: str, timeout: float | None = None) -> Connection:  # noqa: ASYNC109 - the dial outlives it
        """Return an open connection, waiting for it at most `timeout` or `limits.connect` seconds.

        Raises `ConnectFailed` if there is no way to the address, `InvalidInput` if it is none or
        the certificates for TLS cannot be used.
        """
        connection = self._open.get(address)
        if connection is not None and not connection.closed:
            return connection
        if self._closed:
            raise ConnectFailed(address, "this side is closed")
        task = self._dialling.get(address)
        if task is None:
            host, port = parse_address(address)
            self._read_certificates()
            task = asyncio.create_task(self._dial(address, host, port), name=f"dial {address}")
            self._dialling[address] = task
            task.add_done_callback(lambda _: self._dialling.pop(address, None))
        # A caller that gives up does not take the connection away from the others.
        await asyncio.wait({task}, timeout=timeout)
        if not task.done():
            raise ConnectFailed(address, f"no connection within {timeout:g} s")
        if task.cancelled():
            raise ConnectFailed(address, "this side was closed meanwhile")
        outcome = task.result()
        if isinstance(outcome, ConnectFailed):  # one of its own for everyone who waited
            raise ConnectFailed(address, outcome.reason) from outcome.__cause__
        return outcome

    async def request(self, address: str, request: Command, timeout: float) -> Command:  # noqa: ASYNC109 - as in Connection
        """Ask an address; connecting counts towards the time allowed.

        Raises `ConnectFailed` (nothing was sent), `ConnectionLost` or `RequestTimedOut`.
        """
        clock = asyncio.get_running_loop().time
        started = clock()
        connection = await self.connect(address, timeout)
        if connection.closed:
            raise ConnectFailed(address, "the connection was closed as soon as it was made")
        asked = clock()
        try:
            return await connection.request(request, max(0.0, timeout - (asked - started)))
        except RequestTimedOut as error:
            self.doubt(connection, asked, clock() - asked)
            raise type(error)(address, error.request, timeout) from None

    def doubt(self, connection: Connection, asked: float, waited: float) -> None:
        """Take note that a request made at `asked`, by the loop's clock, got no answer in time.

        Java gives up every connection on which a request timed out. We do so if it looks dead, so
        that a slow answer does not cost the held pulls of the same connection.
        """
        if connection.last_read < asked and waited >= self.limits.silence:
            reason = f"silent for {waited:.1f} s"
            connection.close(ConnectionLost(connection.remote_address, reason))

    def known(self, address: str) -> Connection | None:
        """Return the connection to an address if there is one already."""
        connection = self._open.get(address)
        return None if connection is None or connection.closed else connection

    async def close(self, grace: float = 1.0) -> None:
        """Close every connection; what is queued may leave for `grace` seconds. Final."""
        self._closed = True
        tasks = list(self._dialling.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.connections.close(grace)
        self._shared.close()

    async def _dial(self, address: str, host: str, port: int) -> Connection | ConnectFailed:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.limits.connect):
                _, connection = await loop.create_connection(
                    lambda: Connection(self, self._shared, loop, address),
                    host,
                    port,
                    **self._speaking(host),
                )
        except TimeoutError as error:
            failure = ConnectFailed(address, f"no connection within {self.limits.connect:g} s")
            failure.__cause__ = untraced(error)
        except (OSError, UnicodeError) as error:
            failure = ConnectFailed(address, reason_of(error))
            failure.__cause__ = untraced(error)
        else:
            return connection
        return failure

    def _read_certificates(self) -> None:
        if self._tls is not None and self._contexts is None:
            self._contexts = Contexts(self._tls, asyncio.get_running_loop().time)

    def _speaking(self, host: str) -> dict[str, Any]:
        """Return what asyncio wants to know of TLS, which is nothing for a plain connection."""
        if self._tls is None or self._contexts is None:
            return {}
        return {
            "ssl": self._contexts.current(),
            "server_hostname": self._tls.server_name or host,
            "ssl_shutdown_timeout": self.limits.linger,
        }

    # Owner of its connections: remembers open ones, passes the rest on.

    def connection_opened(self, connection: Connection) -> None:
        """Take a connection in."""
        self.connections.add(connection)
        self._open[connection.remote_address] = connection
        self._owner.connection_opened(connection)

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Pass on what a server asks of us."""
        self._owner.requests_received(connection, requests)

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Forget a lost connection."""
        self.connections.discard(connection)
        if self._open.get(connection.remote_address) is connection:
            del self._open[connection.remote_address]
        self._owner.connection_closed(connection, cause)
