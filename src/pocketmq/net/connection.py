"""One TCP connection, the same on both ends: requests may come from either side.

Owns the way of bytes between a socket and its owner: a read becomes answers for their waiters and
one batch of requests, and a peer that takes too little is held back. Belongs to one event loop; no
method may be called from another thread. Knows no request's meaning.
"""

import asyncio
import logging
from typing import Any, cast

import msgspec

from pocketmq.errors import ConnectionLost, ProtocolError
from pocketmq.net.address import socket_name
from pocketmq.net.budget import SMALL
from pocketmq.net.inbox import Inbox, Owner
from pocketmq.net.outbox import Outbox
from pocketmq.net.reasons import reason_of, untraced
from pocketmq.net.shared import Shared
from pocketmq.net.waiters import Sink, Waiters
from pocketmq.net.watch import ConnectionWatch
from pocketmq.protocol.command import (
    ONEWAY_FLAG,
    RESPONSE_FLAG,
    Command,
    read_command,
)
from pocketmq.protocol.frame import Buffer, Frame, FrameReader

logger = logging.getLogger("pocketmq.net")

_LARGE = 64 * 1024  # bytes of requests that are handed to the socket without waiting for others


class Connection(asyncio.BufferedProtocol):
    """A peer: write to it, ask it, close it."""

    __slots__ = (
        "__weakref__", "_budget", "_cause", "_counted", "_inbox", "_loop", "_opaque", "_outbox",
        "_owner", "_reader", "_resumed_at", "_room", "_shared", "_transport", "_waiters", "_watch",
        "accepted", "closed", "context", "limits", "local_address", "received", "remote_address",
    )  # fmt: skip

    def __init__(
        self,
        owner: Owner,
        shared: Shared,
        loop: asyncio.AbstractEventLoop,
        dialled: str = "",
    ) -> None:
        self.limits = limits = shared.limits
        self.accepted = not dialled  # the peer came to us: it is a client, we serve it
        self.remote_address = dialled
        self.local_address = ""
        self.closed = False
        self.context: dict[str, Any] = {}  # what the owner remembers about this peer
        self.received = 0  # bytes so far
        self._owner = owner
        self._shared = shared
        self._budget = shared.strangers or shared.budget
        self._counted = False  # whether the budget holds something for this connection
        self._loop = loop
        self._opaque = shared.opaque
        self._room = shared.room
        self._reader = FrameReader(limits.frame)
        self._waiters = Waiters(loop, dialled)
        self._outbox = Outbox(loop, limits, requesting=not self.accepted)
        self._watch = ConnectionWatch(loop, limits, self._outbox, self._close_for, self._abort_for)
        self._transport: asyncio.Transport | None = None
        self._cause: Exception | None = None
        self._inbox = Inbox(loop, limits, owner, self._outbox)
        self._resumed_at = 0.0

    # What the owner and other callers use

    def write(self, *pieces: Buffer) -> None:
        """Queue whole frames; they leave with everything else queued in this turn of the loop.

        Pieces must not change afterwards. On a closed connection this does nothing.
        """
        self._outbox.write(*pieces)

    def flush(self) -> None:
        """Hand what is queued to the socket now."""
        self._outbox.flush()
        limit = self.limits.write_max
        if self._outbox.paused and self.accepted and self._outbox.unsent > limit:
            self._abort_for(f"more than {limit} bytes wait for the peer to take them")
        if self._counted or self._outbox.unsent:
            self._account()

    async def request(self, request: Command, timeout: float) -> Command:  # noqa: ASYNC109 - one timer serves all requests
        """Send a request and give its answer; the request's opaque number is chosen here.

        Raises `RequestTimedOut` or `ConnectionLost`; a late answer is dropped in silence.
        """
        opaque, answer = self.expect(request.code, timeout)
        self.post(opaque, msgspec.structs.replace(request, opaque=opaque).encode())
        try:
            return await answer
        finally:
            self.forget(opaque)
            del answer  # it holds the error, which holds this frame: free all three at once

    def expect(self, code: int, timeout: float) -> tuple[int, asyncio.Future[Command]]:
        """Take a number for a request that the caller writes, and give what will be its answer.

        The future fails with `RequestTimedOut` or `ConnectionLost`. A caller that stops waiting
        says so with `forget`. Raises `ConnectionLost` if the connection is closed already.
        """
        opaque = self._take_opaque()
        return opaque, self._waiters.add(opaque, code, timeout)

    def expect_into(self, sink: Sink, code: int, timeout: float) -> int:
        """Do the same with a sink in place of a future: told at once, in the turn of the read."""
        opaque = self._take_opaque()
        self._waiters.add_sink(opaque, code, timeout, sink)
        return opaque

    def _take_opaque(self) -> int:
        if self.closed:
            raise self._lost("the connection is closed")
        opaque = self._opaque.take()
        while opaque in self._waiters:  # numbers start again after 2**32 requests
            opaque = self._opaque.take()
        return opaque

    def forget(self, opaque: int) -> None:
        """Drop the answer to a request when it comes."""
        self._waiters.forget(opaque)

    def post(self, opaque: int, frame: Buffer) -> None:
        """Write a request whose number `expect` gave.

        Alone it leaves at once, which saves a turn of the loop; with others under way they leave
        together at the end of this turn. A client whose peer takes too little holds the request
        back: if it is forgotten or times out meanwhile, it is not sent at all.
        """
        outbox = self._outbox
        if outbox.paused and not self.accepted:
            self._waiters.unsent[opaque] = frame
        elif len(self._waiters) == 1:
            outbox.write_now(frame)
        else:
            outbox.write(frame)
            if len(frame) >= _LARGE and not outbox.corked:
                outbox.flush()  # and see whether the socket has room for another one

    def _post_unsent(self) -> None:
        """Send held requests while the socket has room."""
        unsent, outbox = self._waiters.unsent, self._outbox
        while unsent and not outbox.paused:
            frames: list[Buffer] = []
            size = 0
            while unsent and size < _LARGE:
                frame = unsent.pop(next(iter(unsent)))
                frames.append(frame)
                size += len(frame)
            outbox.write(*frames)
            outbox.flush()

    def send_oneway(self, request: Command) -> bool:
        """Send a request nobody answers; False if the connection is closed already.

        Nothing holds the caller back: one who sends many should `await drain()` now and then.
        """
        if self.closed:
            return False
        flag = request.flag | ONEWAY_FLAG
        opaque = self._opaque.take()
        self.write(msgspec.structs.replace(request, opaque=opaque, flag=flag).encode())
        return True

    async def drain(self) -> None:
        """Wait until the peer has taken enough of what waits for it; raise `ConnectionLost`."""
        await self._outbox.drain()
        if self.closed:
            raise self._lost("the connection is closed")

    def close(self, cause: Exception | None = None) -> None:
        """Close after what is queued has left; waiters get `ConnectionLost`.

        The socket goes when the peer has closed its end, too: closing one with unread bytes in it
        would reset the connection and could cost the peer answers that are still on their way.
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

    @property
    def unsent(self) -> int:
        """Bytes the peer has not taken yet."""
        return self._outbox.unsent

    @property
    def clogged(self) -> bool:
        """Whether more than `limits.write_high` bytes are unsent.

        New requests wait by themselves then. Look here before writing answers that were held.
        """
        return self._outbox.clogged

    @property
    def crowded(self) -> bool:
        """Whether no large answer should be made for this peer now; see `put_back`."""
        budget, outbox = self._budget, self._outbox
        if budget is None or not budget.tight:
            return outbox.clogged
        return bool(outbox.unsent) or budget.used >= budget.limit

    @property
    def pressed(self) -> bool:
        """Whether answers should be no larger than they have to be."""
        return self._budget is not None and self._budget.tight

    def put_back(self, requests: list[Command]) -> None:
        """Take back the last requests of a batch: they come again when there is room."""
        if self.closed:
            return
        self._inbox.put_back(self, requests)
        self._outbox.flush()
        if self._outbox.paused:  # `resume_writing` goes on
            return
        if self.crowded and self._budget is not None:
            self._budget.defer(self)
        else:
            self._inbox.resume(self)

    def trust(self) -> None:
        """Take note that the peer has authenticated: it counts among those who did."""
        before, after = self._budget, self._shared.budget
        if before is not after and after is not None:
            self._budget = after
            if before is not None:
                before.forget(self)
                self._account()

    @property
    def waiting(self) -> int:
        """Requests that were read and are not handed over yet."""
        return len(self._inbox)

    @property
    def waiting_since(self) -> float:
        """Since when, by the loop's clock, what is handed over now could have been.

        While the peer itself does not take its answers, its requests do not count as waiting.
        """
        return max(self._watch.last_read, self._resumed_at)

    @property
    def last_read(self) -> float:
        """When the peer was last heard of, by the loop's clock."""
        return self._watch.last_read

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket over."""
        self._transport = cast("asyncio.Transport", transport)
        self._outbox.start(self._transport)
        self._watch.start()
        self.local_address = socket_name(transport.get_extra_info("sockname"))
        if self.accepted:
            peer = self.remote_address or socket_name(transport.get_extra_info("peername"))
            self.remote_address = peer  # told by a load balancer, or the socket's own
            self._waiters.peer = peer
        try:
            self._owner.connection_opened(self)
        except Exception as error:  # noqa: BLE001 - logged; costs this connection only
            self.blame_owner(error)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """Give the place to read to."""
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Handle one read: answers to their waiters, requests to the owner, in one batch."""
        if self.closed:  # what still comes after our end is nobody's
            return
        self._watch.last_read = self._loop.time()
        self.received += nbytes
        failure: ProtocolError | None = None
        requests: list[Command] = []
        frames: list[Frame] = []
        try:
            frames = self._reader.feed(bytes(self._room[:nbytes]))
            for frame in frames:
                command = read_command(frame)
                if not command.flag & RESPONSE_FLAG:
                    requests.append(command)
                elif not self._waiters.answer(command):
                    logger.debug("%s: nobody waits for %r", self.remote_address, command)
        except ProtocolError as error:
            failure = untraced(error)
        if requests:
            self._inbox.take(self, requests)
        failure = failure or self._reader.failure
        if failure is not None:
            logger.info("%s: %s; the connection is closed", self.remote_address, failure)
            self.abort(failure)
        elif self._counted or self._reader.buffered or self._inbox.size:
            self._account(finished=bool(frames))

    def eof_received(self) -> None:
        """Let what is queued leave, then the socket go: the peer has closed its end."""
        if not self.closed:
            self._outbox.flush()
            inside = " in the middle of a frame" if self._reader.buffered else ""
            self._shut(self._lost(f"closed by the peer{inside}"))
            self._watch.expect_progress(closing=True)

    def pause_writing(self) -> None:
        """Take no more work from a slow peer until it has read what waits for it."""
        self._outbox.paused = True
        self._inbox.slow_down(self)
        if not self.closed:
            self._watch.expect_progress()

    def resume_writing(self) -> None:
        """Go on: the peer has caught up."""
        self._outbox.resume()
        if self._waiters.unsent:
            self._post_unsent()
        self.go_on()
        if self._budget is not None:
            self._account()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell waiters and owner; keep nothing."""
        cause = self._lost(reason_of(exc) if exc else "the connection was closed")
        cause.__cause__ = exc and untraced(exc)
        self._shut(cause)
        self._transport = None
        self._outbox.release()
        self._watch.stop()
        if self._budget is not None:
            self._budget.forget(self)
        try:
            self._owner.connection_closed(self, self._cause)
        except Exception:
            logger.exception("%s: the owner failed on its end", self.remote_address)

    # What the inbox asks

    def listen(self, wanted: bool) -> bool:  # noqa: FBT001 - a switch
        """Read on, or not; tell whether that can still be said."""
        transport = self._transport
        if self.closed or transport is None:
            return False
        if wanted:
            transport.resume_reading()
        else:
            transport.pause_reading()
        return True

    def blame_owner(self, error: Exception) -> None:
        """Close because the owner failed, which costs this connection only."""
        logger.error(
            "%s: the owner failed; the connection is closed", self.remote_address, exc_info=error
        )
        self.abort(untraced(error))

    # What the budget asks

    @property
    def held_frame(self) -> int:
        """Bytes that were read and are not handed over yet."""
        return self._reader.buffered + self._inbox.size

    @property
    def is_large_frame(self) -> bool:
        """Whether a frame has begun that is not small."""
        return self._reader.wanted > SMALL and not self.closed

    @property
    def awaits_frame(self) -> bool:
        """Whether a frame has begun and its rest is read as it comes."""
        return self._reader.buffered > 0 and not self._inbox.deaf

    @property
    def missing(self) -> int:
        """Bytes that the unfinished frame lacks."""
        return self._reader.missing

    @property
    def taken(self) -> int:
        """Bytes that the peer took so far."""
        return self._outbox.taken

    @property
    def moved(self) -> int:
        """Bytes that went either way so far."""
        return self.received + self._outbox.taken

    def hold_reading(self, wanted: bool) -> None:  # noqa: FBT001 - a switch
        """Read nothing for now, or go on."""
        self._inbox.starved = wanted
        self._inbox.steer_reading(self)

    def go_on(self) -> None:
        """Hand over requests that waited: there is room for their answers."""
        self._resumed_at = self._loop.time()
        self._inbox.resume(self)

    def cut_off(self, reason: str) -> None:
        """End the connection at once, and log why."""
        self._abort_for(reason)

    def _account(self, *, finished: bool = False) -> None:
        budget, frame, unsent = self._budget, self.held_frame, self._outbox.unsent
        if budget is not None and (frame or unsent or self._counted):
            self._counted = bool(frame or unsent)
            budget.note(self, frame, unsent, finished=finished)

    # The end

    def _close_for(self, reason: str) -> None:
        self.close(self._lost(reason))

    def _abort_for(self, reason: str) -> None:
        if not self.closed:
            logger.warning("%s is cut off: %s", self.remote_address, reason)
        self.abort(self._lost(reason))

    def _shut(self, cause: Exception | None) -> None:
        if self.closed:
            return
        self.closed = True
        self._cause = cause
        self._outbox.end()
        self._inbox.end()
        self._reader.clear()
        if isinstance(cause, ConnectionLost):
            self._waiters.fail(cause)
        else:
            self._waiters.fail(self._lost(str(cause or "the connection was closed")))

    def _lost(self, reason: str) -> ConnectionLost:
        return ConnectionLost(self.remote_address, reason)
