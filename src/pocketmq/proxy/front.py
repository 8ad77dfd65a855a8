"""The proxy's port: TLS and plain clients on one, by their first byte, as on Apache's.

A port of gRPC's own is either TLS or plain. So gRPC listens inside, on loopback, and connections
are relayed to it. It sees all of them come from this machine; `address_of` names the client behind
each, from a table that no peer can write to. A call that did not come through the front has no
address and is refused: the port inside is no way around TLS and client certificates.

gRPC's library is large, so it is loaded for the first client: one that has sent a byte, not a
probe of the port. Clients wait meanwhile. This file must not import it.
"""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from pocketmq.errors import ConnectionLost, ListenFailed
from pocketmq.net.address import Address, socket_name
from pocketmq.net.arrivals import Arrivals
from pocketmq.net.handshake import Handshake
from pocketmq.net.limits import Limits
from pocketmq.net.listener import Listener, bind
from pocketmq.net.reasons import reason_of
from pocketmq.proxy.relay import RelaySide, join

logger = logging.getLogger("pocketmq.proxy")

INSIDE = "127.0.0.1"
"""Where gRPC listens."""
_FILES = 3
"""Descriptors of one relayed connection: the client's, and both ends of the one inside."""
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


class Front:
    """Accepts clients and relays them. Belongs to one event loop."""

    def __init__(
        self, handshake: Handshake, limits: Limits, started: Callable[[], Awaitable[bool]]
    ) -> None:
        """Ask `started` before each client is relayed: it starts gRPC, or returns False."""
        self._handshake = handshake
        self._limits = limits
        self._started = started
        self._inside = Address(INSIDE, 0)
        self._listener: Listener | None = None
        self._open: set[RelaySide] = set()
        self._clients: dict[str, tuple[RelaySide, str]] = {}  # by the address that gRPC sees
        self._arrivals = Arrivals(
            self._welcome, self._clients.__len__, limits.connections, logger, files=_FILES
        )

    def lead_to(self, inside: int) -> None:
        """Relay clients to a port inside from now on."""
        self._inside = Address(INSIDE, inside)

    async def listen(self, host: str, port: int) -> Address:
        """Accept clients and return the address listened on.

        Raises `ListenFailed` if the port is taken or the host is not ours.
        """
        try:
            sockets = await bind(host, port, self._limits.backlog)
        except (OSError, UnicodeError) as error:
            raise ListenFailed(str(Address(host, port)), reason_of(error)) from error
        return self.listen_on(sockets)

    def listen_on(self, sockets: list[socket.socket]) -> Address:
        """Accept clients of sockets that listen already."""
        loop = asyncio.get_running_loop()
        self._listener = Listener(sockets, self._arrivals.take, loop)
        return self._listener.address

    def address_of(self, peer: str) -> str | None:
        """Return the address of the client behind a peer, `host:port` as gRPC sees it.

        None for one that did not come through the front.
        """
        found = self._clients.get(peer)
        return None if found is None else found[1]

    def stop_listening(self) -> None:
        """Accept no new clients; those that are there stay."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    async def close(self) -> None:
        """Close everything; what was to be written may leave for a short time."""
        self.stop_listening()
        await self._arrivals.end(cancel=True)
        leaving = list(self._open)
        for side in leaving:
            side.finish()
        if leaving:
            await asyncio.wait([side.gone for side in leaving], timeout=2 * self._limits.linger)
        for side in leaving:
            side.abort()

    async def _welcome(self, peer: socket.socket) -> None:
        """Relay a client, once it has shown what it speaks."""
        loop = asyncio.get_running_loop()
        outer, inner = RelaySide(loop, self._limits), RelaySide(loop, self._limits)
        try:
            address = socket_name(peer.getpeername())
            _watch_for_death(peer)
            context, _ = await self._handshake.admit(peer)
            tls: dict[str, Any] = {}
            if context is not None:
                tls = {"ssl": context, "ssl_handshake_timeout": self._limits.handshake}
                tls["ssl_shutdown_timeout"] = self._limits.linger
            await loop.connect_accepted_socket(lambda: outer, peer, **tls)
            if not await self._started():
                _drop(peer, outer)
                return
            async with asyncio.timeout(self._limits.connect):
                await loop.create_connection(lambda: inner, *self._inside)
        except (OSError, ConnectionLost) as error:  # closed by the peer, or refused
            logger.info("accepting a connection failed: %s", reason_of(error))
            _drop(peer, outer, inner)
            return
        except asyncio.CancelledError:
            _drop(peer, outer, inner)
            raise
        self._relay(address, outer, inner)

    def _relay(self, address: str, outer: RelaySide, inner: RelaySide) -> None:
        seen = inner.own_address
        self._clients[seen] = inner, address
        self._open |= {outer, inner}
        outer.gone.add_done_callback(lambda _: self._open.discard(outer))

        def forget(_: object) -> None:
            self._arrivals.one_left()
            self._open.discard(inner)
            if self._clients.get(seen) == (inner, address):  # else the port is in use again
                del self._clients[seen]

        inner.gone.add_done_callback(forget)
        join(outer, inner)


def _drop(peer: socket.socket, *sides: RelaySide) -> None:
    for side in sides:
        side.abort()
    peer.close()


def _watch_for_death(peer: socket.socket) -> None:
    """Let the kernel find out that a client is gone that did not say so."""
    with suppress(OSError):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):  # not on every system
                peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
