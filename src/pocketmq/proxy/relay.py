"""Two connections joined into one: what is read from either is written to the other.

A side that takes nothing stops the reading of the other one, so that neither grows memory; one that
takes nothing for long is closed. The end of one is the end of both, after its last bytes.
"""

import asyncio
from typing import cast

from pocketmq.net.address import socket_name
from pocketmq.net.limits import Limits
from pocketmq.proxy.stall_watch import StallWatch

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
