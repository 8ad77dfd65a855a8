"""The open requests of one connection: which caller waits for which answer, and until when.

One timer serves all of them. Also holds back the frames of requests that the socket has no space
for: a request that times out or is cancelled before it was written is certainly not carried out,
which is worth more to the caller than bytes in a buffer (`RequestNotSent`, not `RequestTimedOut`).
Belongs to the connection's event loop.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from pocketmq.errors import ConnectFailed, RequestNotSent, RequestTimedOut, TransportError
from pocketmq.net.outbox import PORTION, Draft, MakeFrames, Outbox
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.command import OpaqueCounter
from pocketmq.protocol.frame import Buffer

_SLACK = 0.001  # loops count in milliseconds at worst: a timer may fire this much early
_PAUSE = 0.005  # between sweeps, so that many deadlines close together cost one sweep
_MOST = 128  # requests that leave together before an iteration ends, ...
_SMALL = 1024  # ... if they have at most this number of bytes; `PORTION` of larger ones
LARGE = 64 * 1024
"""Bytes of requests that are handed to the socket without waiting for others."""


class AnswerSink(Protocol):
    """Where an answer goes: a future, or what looks like one. Must not raise."""

    def done(self) -> bool:
        """Return whether nothing is awaited any more."""

    def set_result(self, result: Any, /) -> None:
        """Take the answer: a command, or for a draft what its reader made of it."""

    def set_exception(self, exception: TransportError, /) -> None:
        """Take the reason why none comes."""


class FramedSink(AnswerSink, Protocol):
    """Where an answer goes, with the request itself."""

    def frame(self, opaque: int) -> Buffer:
        """Return the request with its number."""


ReadAnswers: TypeAlias = Callable[[bytes, int, int, dict[int, Any]], tuple[int, int]]
"""Hands over answers to drafts: gets a read, a position in it, the largest size of a frame, and the
open requests, of which it removes those. Returns how many callers may ask again now that they have
their answers, and where these end: before anything else."""


class OpenRequests:
    """Requests of one connection that wait for their answers, by opaque number."""

    __slots__ = (
        "_held", "_holds_back", "_loop", "_outbox", "_sweep_at", "_time", "_timer",
        "drafts", "open", "peer", "portion", "read_answers", "take",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        outbox: Outbox,
        opaque: OpaqueCounter,
        peer: str,
        *,
        holds_back: bool = True,
    ) -> None:
        """Take where frames go; a server does not hold its few requests back (`holds_back`)."""
        self.peer = peer
        self._loop = loop
        self._time = loop.time
        self._outbox = outbox
        self.take = opaque.take
        """Returns the next number; one that is in `open` cannot be used: see `number`."""
        self._holds_back = holds_back
        # Waiters: the sink, its deadline; code and timeout for the error; a draft has more. Tuples,
        # as one is made per request.
        self.open: dict[int, Any] = {}
        """Open requests by their numbers."""
        self.drafts = outbox.drafts
        """Requests of this event-loop iteration that are not written yet."""
        self.read_answers: ReadAnswers | None = None
        """What reads the answers to drafts, many at once; set with the first of them."""
        self._held: dict[int, Buffer] = {}  # frames the socket has no space for yet, in order
        self._timer: asyncio.TimerHandle | None = None
        self._sweep_at = 0.0
        self.portion = 0
        """Drafts that leave before the iteration ends: half of the requests that were open when a
        read brought several answers, as several callers will ask again. So the peer works on one
        half while the other is made here. 0 after a single answer: a lone request does not wait."""

    def __len__(self) -> int:
        return len(self.open)

    def expect(self, code: int, timeout: float) -> tuple[int, asyncio.Future[Command]]:
        """Return a number for a request and the future that will hold its answer."""
        future: asyncio.Future[Command] = self._loop.create_future()
        return self.expect_into(future, code, timeout), future

    def expect_into(self, sink: AnswerSink, code: int, timeout: float) -> int:
        """Return a number for a request; its answer or `RequestTimedOut` goes to the sink."""
        by_opaque = self.open
        opaque = self.number()
        deadline = self._time() + timeout
        by_opaque[opaque] = (sink, deadline, code, timeout)
        if self._timer is None or deadline < self._sweep_at:
            self._set_timer(deadline)
        return opaque

    def post(self, opaque: int, frame: Buffer) -> None:
        """Write a request, or hold it back while the socket takes no more; see `Connection`."""
        outbox = self._outbox
        if outbox.paused and self._holds_back:
            self._held[opaque] = frame
        elif len(self.open) == 1:
            outbox.write_now(frame)
        else:
            outbox.write(frame)
            if len(frame) >= LARGE and not outbox.corked:
                outbox.flush()  # and see whether the socket has space for another one

    def ask_into(self, sink: FramedSink, code: int, timeout: float) -> None:
        """Do what `expect_into` and `post` do for a sink that has its request, in fewer steps."""
        by_opaque, outbox = self.open, self._outbox
        opaque = self.take()
        if opaque in by_opaque:
            opaque = self.number()
        deadline = self._time() + timeout
        by_opaque[opaque] = (sink, deadline, code, timeout)
        if self._timer is None or deadline < self._sweep_at:
            self._set_timer(deadline)
        if len(by_opaque) == 1 and not outbox.paused:
            outbox.write_now(sink.frame(opaque))
        else:
            self.post(opaque, sink.frame(opaque))

    def number(self) -> int:
        """Return a number that no open request has, for `ask`."""
        opaque = self.take()
        while opaque in self.open:  # numbers start again after 2**32 requests
            opaque = self.take()
        return opaque

    def ask(self, draft: Draft, size: int, make: MakeFrames) -> None:
        """Do what `expect` and `post` do for a request of about `size` bytes.

        A draft begins as a waiter does: sink, deadline, code, timeout; then comes its number.
        The frames of a burst are made together, by `make`. They leave at the end of this event-loop
        iteration, or when there are enough of them (see `portion`). Only on a connection that is
        not closed.
        """
        by_opaque, outbox, drafts = self.open, self._outbox, self.drafts
        opaque, deadline, portion = draft[4], draft[1], self.portion
        by_opaque[opaque] = draft
        if self._timer is None or deadline < self._sweep_at:
            self._set_timer(deadline)
        if outbox.paused or size >= LARGE or (not portion and len(by_opaque) == 1):
            self.post(opaque, make([draft]))
        elif drafts and len(drafts) + 1 < (portion if portion and size <= _SMALL else PORTION):
            drafts.append(draft)  # the first one has seen to it that they leave
        else:
            outbox.add(draft, make)

    def post_held(self) -> None:
        """Write requests that were held back, while the socket takes them."""
        held, outbox = self._held, self._outbox
        while held and not outbox.paused:
            frames: list[Buffer] = []
            size = 0
            while held and size < LARGE:
                frame = held.pop(next(iter(held)))
                frames.append(frame)
                size += len(frame)
            outbox.write(*frames)
            outbox.flush()

    def answer(self, response: Command) -> bool:
        """Hand an answer over; False if no caller waits for it (any more)."""
        waiter = self.open.pop(response.opaque, None)
        if self._held:
            self._held.pop(response.opaque, None)  # a peer that answers what it was not asked
        if waiter is None:
            return False
        sink = waiter[0]
        if sink.done():
            return False
        sink.set_result(response)
        return True

    def answer_drafts(self, data: bytes, start: int, limit: int) -> int:
        """Hand over the answers to drafts at a position of a read; return where they end."""
        if self.read_answers is None or self._held or not self.open:
            return start
        before = len(self.open)
        count, start = self.read_answers(data, start, limit, self.open)
        if count:
            self.portion = 0 if count == 1 else min(max(PORTION, before // 2), _MOST)
        return start

    def forget(self, opaque: int) -> None:
        """Drop the answer when it comes; a request that was not written yet is dropped itself."""
        self.open.pop(opaque, None)
        if self._held:
            self._held.pop(opaque, None)

    def fail(self, error: TransportError) -> None:
        """Fail every open request with its own copy of an error, and stop the timer.

        A request that was not written yet gets `ConnectFailed`: the peer never saw it.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiters, self.open = self.open, {}
        held, self._held = self._held, {}
        for opaque, (future, *_) in waiters.items():
            if not future.done():
                kind = ConnectFailed if opaque in held else type(error)
                future.set_exception(kind(error.address, error.reason))

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._sweep_at = deadline
        self._timer = self._loop.call_at(deadline, self._sweep)

    def _sweep(self) -> None:
        """Time out the requests whose deadline has passed, then sleep until the next deadline."""
        self._timer = None
        now = self._loop.time()
        due = now + _SLACK
        late = [(key, value) for key, value in self.open.items() if value[1] <= due]
        for opaque, (future, _, code, timeout, *_) in late:
            if self.open.pop(opaque, None) is None:
                continue  # a sink before it has closed the connection
            kind = RequestTimedOut if self._held.pop(opaque, None) is None else RequestNotSent
            if not future.done():
                future.set_exception(kind(self.peer, _name(code), timeout))
        if self.open:
            earliest = min(waiter[1] for waiter in self.open.values())
            self._set_timer(max(earliest, now + _PAUSE))


def _name(code: int) -> str:
    try:
        return RequestCode(code).name
    except ValueError:
        return f"request {code}"
