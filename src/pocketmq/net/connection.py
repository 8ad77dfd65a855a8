"""One TCP connection, the same on both ends: requests may come from either side.

Owns the socket's life and the order in which its parts act on a read, a write and the end:
`outbox` gathers and counts what leaves, `inbox` hands requests to the owner and stops reading when
it must, `connection_use` sends requests to the peer, whose answers `open_requests` matches to
callers, and tells the owner how much there is of all that, `held_memory` reports to the server's
memory budget, `connection_end` ends what is idle or stuck, and closes. Belongs to one event loop;
no method may be called from another thread. Independent of what a request means.
"""

import asyncio
import logging
from typing import Any, cast

from pocketmq.net.address import socket_name
from pocketmq.net.connection_end import ConnectionWatch
from pocketmq.net.connection_use import ConnectionCalls, ConnectionLoad
from pocketmq.net.held_memory import HeldMemory
from pocketmq.net.inbox import Inbox, Owner, RequestLane
from pocketmq.net.open_requests import OpenRequests
from pocketmq.net.outbox import Outbox
from pocketmq.net.reasons import reason_of, untraced
from pocketmq.net.shared import LANE_READ, Shared, next_read
from pocketmq.net.spinning import ALONE, ROUNDS, Spin, spin_on_transport
from pocketmq.protocol import Command
from pocketmq.protocol.command import RESPONSE_FLAG
from pocketmq.protocol.command_reader import CommandReader
from pocketmq.protocol.frame import PREFIX_SIZE, Buffer

logger = logging.getLogger("pocketmq.net")


class Connection(ConnectionLoad, ConnectionCalls, asyncio.BufferedProtocol):
    """An open connection to a peer: write to it, send it requests, close it."""

    __slots__ = (
        "__weakref__", "_inbox", "_lane_buffer", "_lane_read", "_loop", "_memory", "_outbox",
        "_owner", "_read_buffer", "_reader", "_reads_on", "_requests", "_resumed_at", "_shared",
        "_spin", "_transport", "_watch", "accepted", "answered", "clock", "context", "lane",
        "limits", "local_address", "received", "remote_address", "requests",
    )  # fmt: skip

    def __init__(
        self,
        owner: Owner,
        shared: Shared,
        loop: asyncio.AbstractEventLoop,
        dialled: str = "",
    ) -> None:
        ConnectionCalls.__init__(self)
        self.limits = limits = shared.limits
        self.accepted = not dialled  # the peer connected to us: it is a client, we serve it
        self.remote_address = dialled
        self.local_address = ""
        self.context: dict[str, Any] = {}  # what the owner remembers about this peer
        self.received = 0  # bytes so far
        self.lane: RequestLane | None = None
        """What may take requests straight from a read, before all others; set by the owner."""
        self.answered = False
        """Whether all of a read was answered, and nothing else is to be done; set by the lane."""
        self._owner = owner
        self._shared = shared
        self._loop = loop
        self.clock = loop.time
        self._read_buffer = shared.read_buffer
        self._lane_read = LANE_READ
        self._lane_buffer = shared.lane_buffer
        self._reader = CommandReader(limits.frame)
        self._outbox = outbox = Outbox(loop, limits, requesting=not self.accepted)
        self._requests = OpenRequests(
            loop, outbox, shared.opaque, dialled, holds_back=not self.accepted
        )
        self.requests = self._requests  # for those who send many
        self._inbox = inbox = Inbox(loop, limits, owner, outbox)
        self._watch = ConnectionWatch(loop, limits, outbox, self._close_for, self.cut_off)
        budget = shared.strangers or shared.budget
        self._memory: HeldMemory | None = None
        if budget is not None:
            self._memory = HeldMemory(budget, self, self._reader, inbox, outbox)
        self._transport: asyncio.Transport | None = None
        self._spin: Spin | None = None
        self._resumed_at = 0.0
        # libuv reads up to 32 times from one socket before it looks at others.
        self._reads_on = self.accepted and type(loop).__module__ == "uvloop"

    # Writing

    def write(self, *pieces: Buffer) -> None:
        """Queue whole frames; they leave with all others queued in this event-loop iteration.

        Pieces must not change afterwards. On a closed connection this does nothing.
        """
        self._outbox.write(*pieces)

    def flush(self) -> None:
        """Hand what is queued to the socket now."""
        outbox, memory = self._outbox, self._memory
        outbox.flush()
        limit = self.limits.write_max
        if outbox.paused and self.accepted and outbox.unsent > limit:
            self.cut_off(f"more than {limit} bytes wait for the peer to take them")
        if memory is not None and (memory.counted or outbox.unsent):
            memory.update()

    def write_now(self, frames: bytes) -> None:
        """Hand whole frames to the socket now, after what is queued: `write` and `flush` in one."""
        memory = self._memory
        if self._outbox.write_through(frames) or (memory is not None and memory.counted):
            self.flush()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket over."""
        self._transport = cast("asyncio.Transport", transport)
        self._outbox.start(self._transport)
        self._watch.start()
        self.local_address = socket_name(transport.get_extra_info("sockname"))
        if self.accepted:
            peer = self.remote_address or socket_name(transport.get_extra_info("peername"))
            self.remote_address = peer  # as a load balancer reported it, or the socket's own
            self._requests.peer = peer
            self._spin = spin_on_transport(transport)
        try:
            self._owner.connection_opened(self)
        except Exception as error:  # noqa: BLE001 - logged; costs this connection only
            self.blame_owner(error)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """Return the buffer to read into: a part for a lane, all for the rest of a large frame."""
        reader = self._reader
        if self.lane is not None and (not reader.wanted or reader.missing <= self._lane_read):
            return self._lane_buffer
        return self._read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Handle one read: answers go to their callers, requests to the owner in one batch.

        A read that a lane takes whole, such as a single send, passes few functions: a process that
        slept before it runs each of them several times slower than in a burst.
        """
        if self.closed:  # bytes after our own end of file are dropped
            return
        self.answered = False  # what was answered outside of a read says nothing about this one
        shared = self._shared
        if shared.latest is self:
            shared.in_a_row += 1
        else:
            shared.latest, shared.in_a_row = self, 0
        self._watch.last_read = self._loop.time()
        self.received += nbytes
        lane, reader, memory, start = self.lane, self._reader, self._memory, 0
        data, lane_read = self._read_buffer[:nbytes].tobytes(), self._lane_read
        if lane is None:
            if not reader.unfinished:
                start = self._requests.answer_drafts(data, 0, self.limits.frame)
        elif nbytes >= LANE_READ or reader.unfinished:
            data = reader.joined(data)
            if len(data) >= LANE_READ and not reader.unfinished:
                self._read_next(min(next_read(data), len(self._read_buffer)))
            start = self._through_lane(lane, data)
        elif data.startswith(lane.starts, PREFIX_SIZE):
            start = self._inbox.pass_by(self, lane, data, 0)
        if start < len(data):
            start = self._hand_over(data, start, lane)
        if reader.failure is not None:
            logger.info("%s: %s; closing the connection", self.remote_address, reader.failure)
            self.abort(untraced(reader.failure))
        elif memory is not None and (memory.counted or reader.unfinished or self._inbox.size):
            memory.update(finished=start > 0)
        if self._reads_on and nbytes in (lane_read, len(self._read_buffer)):
            self._let_others_read()
        if self.answered and self._spin is not None and shared.in_a_row >= ALONE:
            self._read_on_at_once(self._spin)

    def _read_on_at_once(self, spin: Spin) -> None:
        """Handle the next requests of a client that sends one after another, as they come.

        The loop gets no turn between them: that would cost more than a request.
        """
        self._spin = None  # the reads below must not come here
        for _ in range(ROUNDS):
            if not self.answered or self.closed or self._inbox.deaf:
                break
            data = spin.receive(LANE_READ)
            if data is None:
                break
            self._read_buffer[: len(data)] = data
            self.buffer_updated(len(data))
        self._spin = spin

    def _read_next(self, size: int) -> None:
        """Set how much the next reads of a lane may bring."""
        if size != self._lane_read:
            self._lane_read, usual = size, self._shared.lane_buffer
            self._lane_buffer = usual if size == len(usual) else self._read_buffer[:size]

    def _hand_over(self, data: bytes, start: int, lane: RequestLane | None) -> int:
        """Read the commands that a lane left; return more than 0 if a frame was completed."""
        commands = self._reader.read(data, start)
        if commands:
            self._take(commands)
        if lane is not None and start:
            self._inbox.end_lane(self, lane)
        return start + len(commands)

    def _let_others_read(self) -> None:
        """Read on in the next event-loop iteration: more is there, but other connections wait."""
        if not self._inbox.deaf and self.listen(False):
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self._inbox.deaf:
            self.listen(True)

    def _through_lane(self, lane: RequestLane, data: bytes) -> int:
        """Let the lane have what it takes of a large or joined read; return where that ends."""
        reader, inbox, start = self._reader, self._inbox, 0
        if reader.unfinished and inbox.is_free:
            commands, start = reader.finish(data)
            if commands:
                self._take(commands)
        known = data.startswith(lane.starts, start + PREFIX_SIZE)
        if known and not reader.unfinished and not self.closed:
            return inbox.pass_by(self, lane, data, start)
        return start

    def _take(self, commands: list[Command]) -> None:
        """Hand over what one read brought: answers to their callers, then all requests."""
        requests: list[Command] = []
        answer = self._requests.answer
        for command in commands:
            if not command.flag & RESPONSE_FLAG:
                requests.append(command)
            elif not answer(command):
                logger.debug("%s: dropped an unexpected %r", self.remote_address, command)
        if requests:
            self._inbox.take(self, requests)

    def eof_received(self) -> None:
        """Let what is queued leave, then close: the peer has closed its end."""
        if not self.closed:
            self._outbox.flush()
            inside = " in the middle of a frame" if self._reader.unfinished else ""
            self._shut(self._lost(f"closed by the peer{inside}"))
            self._watch.expect_progress(closing=True)

    def pause_writing(self) -> None:
        """Take no more work from a slow peer until it has read what is unsent."""
        self._outbox.paused = True
        self._inbox.slow_down(self)
        if not self.closed:
            self._watch.expect_progress()

    def resume_writing(self) -> None:
        """Continue: the peer has caught up."""
        self._outbox.resume()
        self._requests.post_held()
        self.resume_requests()
        if self._memory is not None:
            self._memory.update()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail open requests, notify the owner, and keep nothing."""
        cause = self._lost(reason_of(exc) if exc else "the connection was closed")
        cause.__cause__ = exc and untraced(exc)
        self._shut(cause)
        self._transport = None
        if self._shared.latest is self:
            self._shared.latest = None
        self._outbox.release()
        self._watch.stop()
        if self._memory is not None:
            self._memory.release()
        try:
            self._owner.connection_closed(self, self._cause)
        except Exception:
            logger.exception("%s: handling the closed connection failed", self.remote_address)

    # What the inbox and the memory budget ask

    def listen(self, wanted: bool) -> bool:  # noqa: FBT001 - a switch
        """Resume or pause reading; return False if the socket is closed."""
        transport = self._transport
        if self.closed or transport is None:
            return False
        if wanted:
            transport.resume_reading()
        else:
            transport.pause_reading()
        return True

    def put_back(self, requests: list[Command]) -> None:
        """Take back the last requests of a batch: they are handed over again when memory allows."""
        if self.closed:
            return
        self._inbox.put_back(self, requests)
        self._outbox.flush()
        if self._outbox.paused:  # `resume_writing` continues
            return
        if self.crowded and self._memory is not None:
            self._memory.budget.defer(self._memory)
        else:
            self._inbox.resume(self)

    def resume_requests(self) -> None:
        """Hand over requests that waited: their answers can be sent now."""
        self._resumed_at = self._loop.time()
        self._inbox.resume(self)

    def blame_owner(self, error: Exception) -> None:
        """Close because the owner raised, which costs this connection only."""
        logger.error(
            "%s: handling its requests failed; closing the connection",
            self.remote_address,
            exc_info=error,
        )
        self.abort(untraced(error))
