"""Outgoing bytes of one connection: gathered for an event-loop iteration, then written together.

Owns their order and their count. Does not decide what happens to a slow peer. Belongs to the
connection's event loop.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

from pocketmq.net.limits import Limits
from pocketmq.protocol.frame import Buffer

_JOINED = 64 * 1024  # up to here one copy is cheaper than a vectored write
_VECTORED = sys.version_info >= (3, 12)  # before, asyncio joins all pieces of such a write
PORTION = 16  # pieces that leave before the iteration ends: the peer starts while we continue
_APART = 32  # pieces: a call for each is cheaper than joining them, if they are large

Draft: TypeAlias = tuple[Any, ...]
"""What a frame is made of."""
MakeFrames: TypeAlias = Callable[[list[Draft]], bytes]
"""Returns the frames of drafts, one after another. Must not raise."""


class Outbox:
    """Frames that wait to be written: those of one event-loop iteration leave together."""

    __slots__ = (
        "_drains", "_flushing", "_full", "_handed", "_high", "_loop", "_low", "_make",
        "_open", "_queued", "_transport", "corked", "drafts", "last_write", "paused",
        "pieces",
    )  # fmt: skip

    def __init__(
        self, loop: asyncio.AbstractEventLoop, limits: Limits, *, requesting: bool = False
    ) -> None:
        self.corked = False  # the caller flushes before this iteration ends: no timer is needed
        self.paused = False  # asyncio's buffer is above its high mark, until below its low mark
        self.last_write = loop.time()
        self._loop = loop
        self._full = limits.write_high if requesting else 0
        self._high = limits.request_high if requesting else limits.write_high
        self._low = limits.request_low if requesting else limits.write_low
        self._open = False
        self._transport: asyncio.Transport | None = None
        self.pieces: list[Buffer] = []
        """What waits for `flush`, before all drafts."""
        self._queued = 0  # bytes in `pieces`
        self.drafts: list[Draft] = []
        """Frames of this iteration that are not made yet, after all pieces; always this list."""
        self._make: MakeFrames = _no_frames
        self._flushing: asyncio.Handle | None = None
        self._handed = 0
        self._drains: list[asyncio.Future[None]] = []

    def start(self, transport: asyncio.Transport) -> None:
        """Write to this socket from now on."""
        self._open = True
        self._transport = transport
        transport.set_write_buffer_limits(self._high, self._low)

    def write(self, *pieces: Buffer) -> None:
        """Queue pieces for the end of this iteration; do nothing before `start` or after `end`."""
        if not self._open:
            return
        if self.drafts:
            self._make_frames()
        self.pieces.extend(pieces)
        self._queued += len(pieces[0]) if len(pieces) == 1 else sum(map(len, pieces))
        if self.corked:
            return
        if len(self.pieces) >= PORTION:
            self.flush()
        elif self._flushing is None:
            self._flushing = self._loop.call_soon(self._flush_soon)

    def add(self, draft: Draft, make: MakeFrames) -> None:
        """Queue a frame that is not made yet, as `write` does: those of a burst are made together.

        All drafts of a connection are made by the same function.
        """
        if not self._open:
            return
        drafts = self.drafts
        drafts.append(draft)
        self._make = make
        if self.corked:
            return
        if len(drafts) >= PORTION:
            self.flush()
        elif self._flushing is None:
            self._flushing = self._loop.call_soon(self._flush_soon)

    def _make_frames(self) -> None:
        frames = self._make(self.drafts)
        self.drafts.clear()
        self.pieces.append(frames)
        self._queued += len(frames)

    def write_now(self, piece: Buffer) -> None:
        """Hand a piece to the socket at once, unless others are queued before it."""
        waiting = self.pieces or self.drafts
        if not self._open or waiting or self.corked or self._transport is None:
            self.write(piece)
            return
        self.last_write = self._loop.time()
        self._handed += len(piece)
        self._transport.write(piece)

    def write_through(self, piece: Buffer) -> int:
        """Hand a piece to the socket at once, after what is queued; return the bytes unsent."""
        transport = self._transport
        if self.pieces or self.drafts or not self._open or transport is None:
            self.write(piece)
            self.flush()
            return self.unsent
        self.last_write = self._loop.time()
        self._handed += len(piece)
        transport.write(piece)
        return transport.get_write_buffer_size()

    def flush(self) -> None:
        """Hand what is queued to the socket."""
        if self.drafts:
            self._make_frames()
        pieces = self.pieces
        transport = self._transport
        if not pieces or transport is None:
            return
        self.pieces = []
        size, self._queued = self._queued, 0
        self._handed += size
        self.last_write = self._loop.time()
        if len(pieces) == 1:
            transport.write(pieces[0])
            return
        if size <= _JOINED:
            transport.write(b"".join(pieces))
        elif not _VECTORED and len(pieces) <= _APART:
            for piece in pieces:
                transport.write(piece)
        elif not _VECTORED:
            transport.write(memoryview(b"".join(pieces)))  # what is left over is not copied again
        else:
            transport.writelines(pieces)
            # CPython 3.12.0-3.12.8 and 3.13.0-3.13.1 forget to look at the limits there
            # (CVE-2024-12254); setting them again looks.
            transport.set_write_buffer_limits(self._high, self._low)

    @property
    def unsent(self) -> int:
        """Bytes queued here or in the socket's buffer in this process."""
        if self.drafts:
            self._make_frames()
        waiting = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return waiting + self._queued

    @property
    def clogged(self) -> bool:
        """Whether more is unsent than the limit, or was and is not yet below the lower one."""
        return self.paused or self.unsent > self._high

    @property
    def full(self) -> bool:
        """Whether the peer must take something before more work is done for it.

        On a client requests fill the socket as a rule; only what is far beyond that counts.
        """
        return self.clogged and self.unsent > self._full

    @property
    def taken(self) -> int:
        """Bytes that have left this process."""
        waiting = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return self._handed - waiting

    async def drain(self) -> None:
        """Wait until the socket takes bytes again, or the connection ends."""
        self.flush()
        if self.paused:
            drained: asyncio.Future[None] = self._loop.create_future()
            self._drains.append(drained)
            await drained

    def resume(self) -> None:
        """Continue: the socket takes bytes again."""
        self.paused = False
        drains, self._drains = self._drains, []
        for drained in drains:
            if not drained.done():
                drained.set_result(None)

    def end(self) -> None:
        """Take nothing more and drop what is queued; the socket keeps what it has."""
        self._open = False
        self.pieces = []
        self.drafts.clear()
        self._queued = 0
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        self.resume()

    def release(self) -> None:
        """Let go of the socket."""
        self.end()
        self._transport = None

    def _flush_soon(self) -> None:
        self._flushing = None
        self.flush()


def _no_frames(_: list[Draft]) -> bytes:
    return b""
