"""The proxy's port: TLS and plain clients on one, by their first byte, as on Apache's.

Apache's servers accept TLS with a self-signed certificate by default, and most of Apache's gRPC
clients use TLS by default and verify nothing. So there is always a certificate to show.

What serves a client is behind an `Inlet`. The libraries it needs are loaded for the first
client: one that has sent a byte, not a probe of the port. Clients wait meanwhile (`LateStart`).
This file must not import these libraries.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from pocketmq.errors import ConnectionLost, ListenFailed
from pocketmq.net import Address, Handshake, Limits, ServerTls, TlsMode
from pocketmq.net.address import socket_name
from pocketmq.net.listener import Arrivals, Listener, bind
from pocketmq.net.reasons import reason_of
from pocketmq.net.self_signed import SelfSigned

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


_HTTP2 = "h2"


class GivenTls(ServerTls, frozen=True, kw_only=True):
    """The TLS settings of a server, for HTTP/2."""

    def context(self) -> ssl.SSLContext:
        """Read the files. Raises OSError (also for TLS's own reasons)."""
        context = super().context()
        context.set_alpn_protocols([_HTTP2])
        return context


def port_tls(tls: ServerTls | None, kept: Path | None = None) -> ServerTls | SelfSigned | None:
    """Return the TLS of a proxy's port for a server's settings; None if it is disabled.

    Without settings it is permissive, with a self-signed certificate, which a file may keep.
    """
    if tls is None:
        return SelfSigned(kept, _HTTP2)
    if tls.mode is TlsMode.DISABLED:
        return None
    return GivenTls(**msgspec.structs.asdict(tls))


_PATIENCE = 30.0
"""Seconds that a client waits."""


class LateStart:
    """The start of one part for the first client that needs it, once for all that wait.

    Belongs to one event loop.
    """

    def __init__(self, start: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._start = start
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def done(self) -> bool:
        """Start it, unless that was done, and wait; False if it failed or takes too long.

        A failure is logged once for all that wait, and the next caller tries again.
        """
        task = self._task
        if task is None:
            if self._closed:
                return False
            task = self._task = asyncio.create_task(self._start())
            task.add_done_callback(self._ended)
        if not task.done():
            await asyncio.wait([task], timeout=_PATIENCE)
        return task.done() and not task.cancelled() and task.exception() is None

    async def close(self) -> None:
        """Begin no more starts, and wait for one in progress, which the caller then undoes."""
        self._closed = True
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None or task.cancelled():
            self._task = None
        if error is not None:
            logger.error(
                'gRPC service failed to start: error="%s: %s"; '
                "closing the connections that wait for it; the next one starts it again",
                type(error).__name__, error,
            )  # fmt: skip
