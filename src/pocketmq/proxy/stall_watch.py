"""A limit on how long a connection may have bytes that its peer does not take.

One that makes progress is watched on; one that makes none for that long is closed.
"""

import asyncio

from pocketmq.net.limits import Limits


class StallWatch:
    """Watches what one connection has not sent. Belongs to its event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, limits: Limits
    ) -> None:
        self._loop = loop
        self._transport = transport
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        self._unsent = 0

    def start(self) -> None:
        """Close the connection if nothing leaves it for long; soon if it is closing already."""
        self.stop()
        self._unsent = self._transport.get_write_buffer_size()
        closing = self._transport.is_closing()
        seconds = self._limits.linger if closing else self._limits.write_stall
        self._timer = self._loop.call_later(seconds, self._check)

    def stop(self) -> None:
        """Watch no more; harmless if nothing is watched."""
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        if self._transport.get_write_buffer_size() >= self._unsent:
            self._transport.abort()
        else:
            self.start()
