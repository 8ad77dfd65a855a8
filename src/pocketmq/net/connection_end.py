"""How a connection ends: after what is queued has left, or at once; and what its callers get then.

Owns the order in which the parts of a connection end. Belongs to the connection's event loop.
"""

import asyncio

from pocketmq.errors import ConnectionLost
from pocketmq.net.inbox import Inbox
from pocketmq.net.open_requests import OpenRequests
from pocketmq.net.outbox import Outbox
from pocketmq.net.shared import Shared
from pocketmq.net.watch import ConnectionWatch
from pocketmq.protocol.command_reader import CommandReader


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
