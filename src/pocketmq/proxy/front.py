"""The proxy's port: TLS and plain clients on one, by their first byte, as on Apache's.

What serves a client is behind an `Inlet`. The libraries it needs are loaded for the first client:
one that has sent a byte, not a probe of the port. Clients wait meanwhile. This file must not import
them.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from pocketmq.errors import ConnectionLost, ListenFailed
from pocketmq.net.address import Address, socket_name
from pocketmq.net.arrivals import Arrivals
from pocketmq.net.handshake import Handshake
from pocketmq.net.limits import Limits
from pocketmq.net.listener import Listener, bind
from pocketmq.net.reasons import reason_of

logger = logging.getLogger("pocketmq.proxy")

_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}


class Inlet(Protocol):
    """What serves the clients of a front."""

    files: int
    """Descriptors of one connection."""
    left: Callable[[], None]
    """Called when a client has left; the front sets it."""

    def __len__(self) -> int:
        """Return the number of clients."""

    async def enter(self, peer: socket.socket, address: str, tls: dict[str, Any]) -> None:
        """Serve a client, over TLS by asyncio's options if there are any. Raises OSError."""

    async def close(self) -> None:
        """Close all connections."""


class Front:
    """Accepts clients. Belongs to one event loop."""

    def __init__(self, handshake: Handshake, limits: Limits, inlet: Inlet) -> None:
        self._handshake = handshake
        self._limits = limits
        self._inlet = inlet
        self._listener: Listener | None = None
        self._arrivals = Arrivals(
            self._welcome, inlet.__len__, limits.connections, logger, files=inlet.files
        )
        inlet.left = self._arrivals.one_left

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

    def stop_listening(self) -> None:
        """Accept no new clients; those that are there stay."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    async def close(self) -> None:
        """Close everything; what was to be written may leave for a short time."""
        self.stop_listening()
        await self._arrivals.end(cancel=True)
        await self._inlet.close()

    async def _welcome(self, peer: socket.socket) -> None:
        """Serve a client, once it has shown what it speaks."""
        try:
            address = socket_name(peer.getpeername())
            _watch_for_death(peer)
            context, _ = await self._handshake.admit(peer)
            tls: dict[str, Any] = {}
            if context is not None:
                tls = {"ssl": context, "ssl_handshake_timeout": self._limits.handshake}
                tls["ssl_shutdown_timeout"] = self._limits.linger
            await self._inlet.enter(peer, address, tls)
        except (OSError, ConnectionLost) as error:  # closed by the peer, or refused
            logger.info("accepting a connection failed: %s", reason_of(error))
            peer.close()
        except asyncio.CancelledError:
            peer.close()
            raise


def _watch_for_death(peer: socket.socket) -> None:
    """Let the kernel find out that a client is gone that did not say so."""
    with suppress(OSError):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):  # not on every system
                peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
