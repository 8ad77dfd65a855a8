"""One timer for one connection: detects an idle one, and a peer that takes no bytes.

Owns when a connection has been idle or stuck for too long. Closing it is up to the connection.
"""

import asyncio
from collections.abc import Callable

from pocketmq.net.limits import Limits
from pocketmq.net.outbox import Outbox

_SLACK = 0.001  # loops count in milliseconds at worst: a timer may fire this much early


class ConnectionWatch:
    """Calls `close` with the reason for an idle connection, `cut` for a stuck one."""

    __slots__ = (
        "_closing", "_limits", "_loop", "_outbox", "_progress_at", "_taken", "_timer", "close",
        "cut", "last_read",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        outbox: Outbox,
        close: Callable[[str], None],
        cut: Callable[[str], None],
    ) -> None:
        self.close: Callable[[str], None] | None = close
        self.cut: Callable[[str], None] | None = cut
        self.last_read = loop.time()
        self._loop = loop
        self._limits = limits
        self._outbox = outbox
        self._closing = False
        self._progress_at = 0.0
        self._taken = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Close the connection if it stays idle."""
        self.last_read = self._loop.time()
        self._set(self._limits.idle)

    def expect_progress(self, *, closing: bool = False) -> None:
        """From now on the peer should take something: all of it if `closing`."""
        self._closing = self._closing or closing
        self._progress_at = self._loop.time()
        self._taken = self._outbox.taken
        self._set(self._patience / 4)

    def stop(self) -> None:
        """Stop the timer, and drop the references to the connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.close = self.cut = None

    @property
    def _patience(self) -> float:
        return self._limits.linger if self._closing else self._limits.write_stall

    def _set(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay, self._check)

    def _check(self) -> None:
        self._timer = None
        if self._closing or self._outbox.paused:
            self._check_progress()
        else:
            self._check_idle()

    def _check_progress(self) -> None:
        now = self._loop.time()
        taken = self._outbox.taken
        patience = self._patience
        if taken != self._taken:
            self._taken = taken
            self._progress_at = now
        elif now - self._progress_at >= patience - _SLACK:
            if self.cut is not None:
                self.cut(f"the peer read nothing of its unsent answers for {patience:g} s")
            return
        self._set(patience / 4)

    def _check_idle(self) -> None:
        limit = self._limits.idle
        quiet = self._loop.time() - max(self.last_read, self._outbox.last_write)
        if quiet < limit - _SLACK:
            self._set(limit - quiet)
        elif self.close is not None:
            self.close(f"idle for {limit:g} s")
