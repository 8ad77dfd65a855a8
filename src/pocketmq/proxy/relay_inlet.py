"""The inlet without the native core: clients are relayed to a port of grpcio's own, on loopback.

grpcio takes no accepted sockets, and a port of its own is either TLS or plain. It sees all clients
come from this machine; `address_of` names the client behind each, from a table that no peer can
write to. A call that did not come through here has no address and is refused: the port inside is no
way around TLS and client certificates. This file must not import grpcio.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from pocketmq.net.address import Address
from pocketmq.net.limits import Limits
from pocketmq.proxy.relay import RelaySide, join

INSIDE = "127.0.0.1"
"""Where grpcio listens."""


class RelayInlet:
    """Relays the sockets that a front admits. Belongs to one event loop."""

    files = 3
    """The client's, and both ends of the one inside."""

    def __init__(self, limits: Limits, started: Callable[[], Awaitable[bool]]) -> None:
        """Ask `started` before each client is relayed: it calls `lead_to`, or returns False."""
        self.left: Callable[[], None] = lambda: None
        self._limits = limits
        self._started = started
        self._inside = Address(INSIDE, 0)
        self._open: set[RelaySide] = set()
        self._clients: dict[str, tuple[RelaySide, str]] = {}  # by the address that grpcio sees

    def __len__(self) -> int:
        return len(self._clients)

    def lead_to(self, inside: int) -> None:
        """Relay clients to a port inside from now on."""
        self._inside = Address(INSIDE, inside)

    def address_of(self, peer: str) -> str | None:
        """Return the address of the client behind a peer, `host:port` as grpcio sees it.

        None for one that did not come through here.
        """
        found = self._clients.get(peer)
        return None if found is None else found[1]

    async def enter(self, peer: socket.socket, address: str, tls: dict[str, Any]) -> None:
        """Relay a client. Raises OSError."""
        loop = asyncio.get_running_loop()
        outer, inner = RelaySide(loop, self._limits), RelaySide(loop, self._limits)
        try:
            await loop.connect_accepted_socket(lambda: outer, peer, **tls)
            if not await self._started():
                outer.abort()
                return
            async with asyncio.timeout(self._limits.connect):
                await loop.create_connection(lambda: inner, *self._inside)
        except BaseException:
            outer.abort()
            inner.abort()
            raise
        self._relay(address, outer, inner)

    async def close(self) -> None:
        """Close everything; what was to be written may leave for a short time."""
        leaving = list(self._open)
        for side in leaving:
            side.finish()
        if leaving:
            await asyncio.wait([side.gone for side in leaving], timeout=2 * self._limits.linger)
        for side in leaving:
            side.abort()

    def _relay(self, address: str, outer: RelaySide, inner: RelaySide) -> None:
        seen = inner.own_address
        self._clients[seen] = inner, address
        self._open |= {outer, inner}
        outer.gone.add_done_callback(lambda _: self._open.discard(outer))

        def forget(_: object) -> None:
            self.left()
            self._open.discard(inner)
            if self._clients.get(seen) == (inner, address):  # else the port is in use again
                del self._clients[seen]

        inner.gone.add_done_callback(forget)
        join(outer, inner)
