"""When and how a connection ends.

`ConnectionWatch` has one timer for an idle peer and for one that takes no bytes;
`ConnectionEnd` closes after what is queued has left, or at once, and owns the order in which
the parts of a connection end and what its callers get then. Belongs to the connection's event
loop.
"""

import asyncio
from collections.abc import Callable

from pocketmq.errors import ConnectionLost
from pocketmq.net.inbox import Inbox
from pocketmq.net.limits import Limits
from pocketmq.net.open_requests import OpenRequests
from pocketmq.net.outbox import Outbox
from pocketmq.net.shared import Shared
from pocketmq.protocol.command_reader import CommandReader

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
                self.cut(f"the peer read nothing of its unsent responses for {patience:g} s")
            return
        self._set(patience / 4)

    def _check_idle(self) -> None:
        limit = self._limits.idle
        quiet = self._loop.time() - max(self.last_read, self._outbox.last_write)
        if quiet < limit - _SLACK:
            self._set(limit - quiet)
        elif self.close is not None:
            self.close(f"idle for {limit:g} s")


class ConnectionEnd:
    """The part of a connection that closes it."""

    __slots__ = ("_cause", "closed")

    remote_address: str
    _inbox: Inbox
    _outbox: Outbox
    _reader: CommandReader
    _requests: OpenRequests
    _shared: Shared
    _transport: asyncio.Transport | None
    _watch: ConnectionWatch

    def __init__(self) -> None:
        self.closed = False
        self._cause: Exception | None = None

    def close(self, cause: Exception | None = None) -> None:
        """Close after what is queued has left; open requests get `ConnectionLost`.

        The socket is closed when the peer has closed its end, too: closing one with unread bytes
        in it would reset the connection, and the peer could lose answers still on their way.
        """
        if self.closed:
            return
        self._outbox.flush()
        self._shut(cause)
        transport = self._transport
        if transport is None:
            return
        if not transport.can_write_eof():  # TLS has its own farewell
            transport.close()
            return
        try:
            transport.write_eof()
        except OSError:  # the peer has just reset it
            transport.abort()
            return
        transport.resume_reading()
        self._watch.expect_progress(closing=True)

    def abort(self, cause: Exception | None = None) -> None:
        """Close at once, dropping what is queued."""
        self._shut(cause)
        if self._transport is not None:
            self._transport.abort()

    def cut_off(self, reason: str) -> None:
        """Abort because the peer misbehaves, and log why (at most a few lines a minute)."""
        if not self.closed:
            self._shared.cut_offs.cut_off(self.remote_address, reason)
        self.abort(self._lost(reason))

    def _close_for(self, reason: str) -> None:
        self.close(self._lost(reason))

    def _shut(self, cause: Exception | None) -> None:
        """End everything but the socket. The parts first: failing a request may run callers."""
        if self.closed:
            return
        self.closed = True
        self._cause = cause
        self._outbox.end()
        self._inbox.end()
        self._reader.clear()
        if isinstance(cause, ConnectionLost):
            self._requests.fail(cause)
        else:
            self._requests.fail(self._lost(str(cause or "the connection was closed")))

    def _lost(self, reason: str) -> ConnectionLost:
        return ConnectionLost(self.remote_address, reason)
