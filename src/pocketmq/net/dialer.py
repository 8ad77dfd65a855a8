"""Outgoing connections: one for each address, opened when first needed, reopened when lost."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from pocketmq.errors import ConnectFailed, ConnectionLost, RequestTimedOut
from pocketmq.net.address import parse_address
from pocketmq.net.connection import Connection
from pocketmq.net.inbox import Owner
from pocketmq.net.limits import Limits
from pocketmq.net.reasons import reason_of, untraced
from pocketmq.net.shared import OpenConnections, Shared
from pocketmq.net.tls import Contexts, Tls
from pocketmq.protocol import Command


class Dialer:
    """Outgoing connections by address. Callers of one address share one connection."""

    def __init__(self, owner: Owner, limits: Limits | None = None, tls: Tls | None = None) -> None:
        """Take the owner of the connections, limits, and TLS settings (None: plain)."""
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
        """TLS settings; None for plain connections."""
        return self._tls

    async def connect(self, address: str, timeout: float | None = None) -> Connection:  # noqa: ASYNC109 - the dial outlives it
        """Return an open connection, waiting for it at most `timeout` or `limits.connect` seconds.

        Raises `ConnectFailed` if the address cannot be reached, `InvalidInput` if it is not an
        address or the TLS certificates are unusable.
        """
        connection = self._open.get(address)
        if connection is not None and not connection.closed:
            return connection
        if self._closed:
            raise ConnectFailed(address, "the client is closed")
        task = self._dialling.get(address)
        if task is None:
            host, port = parse_address(address)
            self._read_certificates()
            task = asyncio.create_task(self._dial(address, host, port), name=f"dial {address}")
            self._dialling[address] = task
            task.add_done_callback(lambda _: self._dialling.pop(address, None))
        # Not `await task`: a caller that is cancelled must not cancel the dial of the others.
        await asyncio.wait({task}, timeout=timeout)
        if not task.done():
            raise ConnectFailed(address, f"no connection within {timeout:g} s")
        if task.cancelled():
            raise ConnectFailed(address, "the client was closed meanwhile")
        outcome = task.result()
        if isinstance(outcome, ConnectFailed):  # a new error for each caller that waited
            raise ConnectFailed(address, outcome.reason) from outcome.__cause__
        return outcome

    async def request(self, address: str, request: Command, timeout: float) -> Command:  # noqa: ASYNC109 - as in Connection
        """Send a request to an address and return the answer; `timeout` includes connecting.

        Raises `ConnectFailed` (nothing was sent), `ConnectionLost` or `RequestTimedOut`.
        """
        clock = asyncio.get_running_loop().time
        started = clock()
        connection = await self.connect(address, timeout)
        if connection.closed:
            raise ConnectFailed(address, "the connection was closed as soon as it was made")
        left = max(0.0, timeout - (clock() - started))

        def frame(opaque: int) -> bytes:
            return msgspec.structs.replace(request, opaque=opaque).encode()

        return await self.ask(connection, request.code, frame, left, timeout)

    async def ask(
        self,
        connection: Connection,
        code: int,
        frame: Callable[[int], bytes],
        timeout: float,  # noqa: ASYNC109 - as in Connection
        named: float | None = None,
    ) -> Command:
        """Send what `frame` returns for a number on an open connection, and return the answer.

        Raises what `request` does; an error names `timeout`, or `named` if that was only a part.
        """
        asked = connection.clock()
        opaque, answer = connection.expect(code, timeout)
        try:
            connection.post(opaque, frame(opaque))
            return await answer
        except BaseException as error:
            connection.forget(opaque)
            if not isinstance(error, RequestTimedOut):
                raise
            raise self.late(connection, asked, error, timeout if named is None else named) from None
        finally:
            del answer  # it holds the error, which holds this frame: free all three at once

    def late(
        self, connection: Connection, asked: float, error: RequestTimedOut, waited: float
    ) -> RequestTimedOut:
        """Return what to raise for a request sent at `asked`, by the loop's clock; see `doubt`."""
        self.doubt(connection, asked, connection.clock() - asked)
        return type(error)(connection.remote_address, error.request, waited)

    def doubt(self, connection: Connection, asked: float, waited: float) -> None:
        """Note that a request sent at `asked`, by the loop's clock, got no answer in time.

        Java closes every connection on which a request timed out. We do so only if no byte came
        since, so that one slow answer does not cost the suspended pulls of the same connection. The
        last byte may be as old as the request, which was sent while it was read.
        """
        if connection.last_read <= asked and waited >= self.limits.silence:
            reason = f"silent for {waited:.1f} s"
            connection.close(ConnectionLost(connection.remote_address, reason))

    def known(self, address: str) -> Connection | None:
        """Return the connection to an address if there is one already."""
        connection = self._open.get(address)
        return None if connection is None or connection.closed else connection

    async def close(self, grace: float = 1.0) -> None:
        """Close every connection for good; queued frames may leave for `grace` seconds."""
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
        """Return asyncio's TLS options; none for a plain connection."""
        if self._tls is None or self._contexts is None:
            return {}
        return {
            "ssl": self._contexts.current(),
            "server_hostname": self._tls.server_name or host,
            "ssl_shutdown_timeout": self.limits.linger,
        }

    # Owner of its connections: remembers open ones, passes the rest on.

    def connection_opened(self, connection: Connection) -> None:
        """Add a connection."""
        self.connections.add(connection)
        self._open[connection.remote_address] = connection
        self._owner.connection_opened(connection)

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        """Pass on requests of a server to this client."""
        self._owner.requests_received(connection, requests)

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        """Remove a lost connection."""
        self.connections.discard(connection)
        if self._open.get(connection.remote_address) is connection:
            del self._open[connection.remote_address]
        self._owner.connection_closed(connection, cause)
