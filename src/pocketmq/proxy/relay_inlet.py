"""The inlet without the native core: clients are relayed to a port of grpcio's own, on loopback.

grpcio takes no accepted sockets, and a port of its own is either TLS or plain. It sees all
clients come from this machine; `address_of` names the client behind each, from a table that no
peer can write to. A call that did not come through here has no address and is refused: the port
inside is no way around TLS and client certificates. This file must not import grpcio.

A side of a relay that takes nothing stops the reading of the other one, so that neither grows
memory; one that takes nothing for long is closed. The end of one is the end of both, after its
last bytes.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any, cast

from pocketmq.net.address import Address, socket_name
from pocketmq.net.limits import Limits
from pocketmq.proxy.stall_watch import StallWatch

INSIDE = "127.0.0.1"
"""Where grpcio listens."""
_MOST_UNSENT = 64 * 1024
"""Unsent bytes above which the other side is not read."""


class RelaySide(asyncio.Protocol):
    """One of the two connections; it reads nothing before it is joined."""

    __slots__ = (
        "_early", "_limits", "_loop", "_other", "_stall", "_transport", "gone",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self.gone: asyncio.Future[None] = loop.create_future()
        """Done when it is closed."""
        self._loop = loop
        self._limits = limits
        self._transport: asyncio.Transport | None = None
        self._other: RelaySide | None = None
        self._stall: StallWatch | None = None
        self._early = b""  # uvloop reads once before it pauses

    @property
    def own_address(self) -> str:
        """The address of this end, as `host:port`; empty if it was never open."""
        if self._transport is None:
            return ""
        return socket_name(self._transport.get_extra_info("sockname"))

    def finish(self) -> None:
        """Close it after its last bytes, or soon if the peer does not take them."""
        if self._transport is None or self._stall is None or self.gone.done():
            return
        if not self._transport.is_closing():  # closed twice, one of TLS forgets its buffer
            self._transport.close()
        self._stall.start()

    def abort(self) -> None:
        """Close it now; does nothing before it is open or a second time."""
        if self._transport is not None:
            self._transport.abort()

    def joined_to(self, other: "RelaySide") -> None:
        """Read from now on, into the other."""
        self._other = other
        if self._early:
            other.write(self._early)
            self._early = b""
        self.read_on()

    def read_on(self) -> None:
        """Resume reading."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def stop_reading(self) -> None:
        """Read nothing for a while."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def write(self, data: bytes) -> None:
        """Write what the other has read."""
        if self._transport is not None:
            self._transport.write(data)

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait until it is joined."""
        self._transport = cast("asyncio.Transport", transport)
        self._stall = StallWatch(self._loop, self._transport, self._limits)
        self._transport.set_write_buffer_limits(high=_MOST_UNSENT)
        self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        if self._other is not None:
            self._other.write(data)
        else:
            self._early += data
            self.stop_reading()

    def pause_writing(self) -> None:
        """Let no more come from the other, until the peer has taken what is unsent."""
        if self._other is not None:
            self._other.stop_reading()
        if self._stall is not None:
            self._stall.start()

    def resume_writing(self) -> None:
        """Let more come."""
        if self._transport is None or self._transport.is_closing():
            return  # what is left is still watched
        if self._stall is not None:
            self._stall.stop()
        if self._other is not None:
            self._other.read_on()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """End the other, too."""
        if self._stall is not None:
            self._stall.stop()
        if not self.gone.done():
            self.gone.set_result(None)
        if self._other is not None:
            self._other.finish()


def join(one: RelaySide, other: RelaySide) -> None:
    """Relay in both directions; if one is closed already, close the other."""
    one.joined_to(other)
    other.joined_to(one)
    for side, opposite in ((one, other), (other, one)):
        if side.gone.done():
            opposite.finish()


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
