"""One client's connection on the native core: bytes in, calls, bytes out, and back-pressure.

The core writes nothing while the client takes nothing, which lets calls wait; a client that takes
nothing for long is disconnected, and so is one that does not greet.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pocketmq.net.limits import Limits
from pocketmq.proxy.stall_watch import StallWatch

if TYPE_CHECKING:  # it loads protobuf's library, which is done late
    from pocketmq.proxy.native_calls import NativeCalls

logger = logging.getLogger("pocketmq.proxy")

NewCalls: TypeAlias = "Callable[[str, Callable[[], None], Callable[[], None]], NativeCalls]"
"""Makes the calls of a client, by its address and what sends their output: soon, and now."""
_MOST_UNSENT = 64 * 1024
"""Unsent bytes above which nothing is read or written."""


def _nothing(*_: Any) -> None:
    """Stand for what comes when a client is served."""


class NativeLink(asyncio.Protocol):
    """One connection; it reads nothing before it is served."""

    def __init__(self, address: str, limits: Limits) -> None:
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        """Done when it is closed."""
        self._address = address
        self._limits = limits
        self._transport: asyncio.Transport | None = None
        self._core: Any = None
        self._calls: NativeCalls | None = None
        self._write: Callable[[bytes], None] = _nothing
        self._post: Callable[[list[Any], Any], None] = _nothing
        self._flushing = False
        self._leaving = False
        self._paused = False
        self._stall: StallWatch | None = None
        self._greeting: asyncio.TimerHandle | None = None
        self._early = b""  # uvloop reads once before it pauses

    def serve(self, new_calls: NewCalls) -> None:
        """Read from now on, and serve calls."""
        if self._transport is None or self.gone.done():
            return
        self._calls = calls = new_calls(self._address, self._changed, self._flush)
        self._core = calls.core
        self._write = self._transport.write
        if calls.shortcuts is not None:
            self._post = calls.shortcuts.post
        self._greeting = self._loop.call_later(self._limits.handshake, self._check_greeting)
        self._transport.resume_reading()
        early, self._early = self._early, b""
        self.data_received(early)

    async def leave(self, grace: float) -> None:
        """Accept no more calls, end those that are open and close the connection."""
        if self._calls is not None and not self.gone.done():
            self._leaving = True
            self._core.leave()
            await self._calls.leave(grace)
            self._flush()  # the ends of calls, which a connection that closes would not send
            self._core.close()
            self._flush()
        self.finish()

    def finish(self) -> None:
        """Close it after its last bytes, or soon if the client does not take them."""
        if self._transport is None or self._stall is None or self.gone.done():
            return
        if not self._transport.is_closing():  # closed twice, one of TLS forgets its buffer
            self._transport.close()
        self._stall.start()

    def abort(self) -> None:
        """Close it now; does nothing before it is open or a second time."""
        if self._transport is not None:
            self._transport.abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait until it is served."""
        self._transport = cast("asyncio.Transport", transport)
        self._stall = StallWatch(self._loop, self._transport, self._limits)
        self._transport.set_write_buffer_limits(high=_MOST_UNSENT)
        self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Handle what came: nearly always plain calls alone, whose requests leave now.

        A call that comes alone finds none of this in the processor's caches: what it costs is the
        number of steps.
        """
        core = self._core
        if core is None:
            self._early += data
            return
        try:
            came = core.feed(data)
        except RuntimeError as error:
            self._failed(error)
            return
        if type(came) is list and not self._leaving:
            self._post(came, self._calls)
        else:
            self._carry_out(came)

    def pause_writing(self) -> None:
        """Read and write nothing until the client has taken what is unsent."""
        self._paused = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        if self._stall is not None:
            self._stall.start()

    def resume_writing(self) -> None:
        """Continue."""
        if self._transport is None or self._transport.is_closing():
            return  # what is left is still watched
        self._paused = False
        if self._stall is not None:
            self._stall.stop()
        self._transport.resume_reading()
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """End all calls."""
        if self._stall is not None:
            self._stall.stop()
        if self._greeting is not None:
            self._greeting.cancel()
        if not self.gone.done():
            self.gone.set_result(None)
        if self._calls is not None:
            self._calls.cancel_all()

    # The core

    def _changed(self) -> None:
        """Send what the core has, once for all calls of this event-loop iteration."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush_soon)

    def _flush_soon(self) -> None:
        self._flushing = False
        self._flush()

    def _flush(self) -> None:
        """Send what the core has: nearly always bytes alone."""
        transport = self._transport
        if self._paused or transport is None or transport.is_closing():
            return
        try:
            came = self._core.flush()
        except RuntimeError as error:
            self._failed(error)
            return
        if type(came) is bytes and not self._leaving:
            if came:
                self._write(came)
        else:
            self._carry_out(came)

    def _carry_out(self, came: Any) -> None:
        """Do what the core returned: bytes alone, plain calls alone, or all of it."""
        try:
            while type(came) is tuple and self._take(*came):
                came = self._core.flush()
        except RuntimeError as error:
            self._failed(error)
            return
        if type(came) is list:
            self._post(came, self._calls)
        elif type(came) is bytes and came:
            self._write(came)
        if self._leaving and self._calls is not None:
            self._calls.check_left()

    def _failed(self, error: RuntimeError) -> None:
        logger.error("connection failed: client=%s", self._address, exc_info=error)
        self.abort()

    def _take(self, output: bytes, events: list[Any], more: bool, plain: list[Any]) -> bool:  # noqa: FBT001 - the core's
        """Carry out all that came; return whether there is more."""
        assert self._transport is not None
        assert self._calls is not None
        if output:
            self._write(output)
        if plain:
            self._post(plain, self._calls)
        for event in events:
            self._calls.take(event)
        if self._core.closed:
            self.finish()
        return more and not self._paused and not self._transport.is_closing()

    def _check_greeting(self) -> None:
        if not self._core.greeted:
            self.abort()
