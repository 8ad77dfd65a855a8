"""The open requests of one connection: who waits for which answer, and until when.

One timer serves all of them. Knows no socket.
"""

import asyncio
from typing import Protocol, TypeAlias

from pocketmq.errors import ConnectFailed, RequestNotSent, RequestTimedOut, TransportError
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.frame import Buffer

_SLACK = 0.001  # loops count in milliseconds at worst: a timer may fire this much early
_PAUSE = 0.005  # between sweeps, so that many deadlines close together cost one sweep


class Sink(Protocol):
    """Where an answer goes: a future, or what looks like one. Must not raise."""

    def done(self) -> bool:
        """Tell whether nothing is awaited any more."""

    def set_result(self, result: Command, /) -> None:
        """Take the answer."""

    def set_exception(self, exception: TransportError, /) -> None:
        """Take the reason why none comes."""


# The sink, its deadline; code and timeout for the error. A tuple, as one is made per request.
_Waiter: TypeAlias = tuple[Sink, float, int, float]


class Waiters:
    """Answers awaited, by opaque number."""

    __slots__ = ("_by_opaque", "_loop", "_sweep_at", "_time", "_timer", "peer", "unsent")

    def __init__(self, loop: asyncio.AbstractEventLoop, peer: str) -> None:
        self._loop = loop
        self._time = loop.time
        self.peer = peer
        self._by_opaque: dict[int, _Waiter] = {}
        self.unsent: dict[int, Buffer] = {}  # frames that the socket has no room for yet, in order
        self._timer: asyncio.TimerHandle | None = None
        self._sweep_at = 0.0

    def __len__(self) -> int:
        return len(self._by_opaque)

    def __contains__(self, opaque: int) -> bool:
        return opaque in self._by_opaque

    def add(self, opaque: int, code: int, timeout: float) -> asyncio.Future[Command]:
        """Give the future that will hold the answer, or `RequestTimedOut` once time is up."""
        future: asyncio.Future[Command] = self._loop.create_future()
        self.add_sink(opaque, code, timeout, future)
        return future

    def add_sink(self, opaque: int, code: int, timeout: float, sink: Sink) -> None:
        """Have the answer, or `RequestTimedOut`, handed over as soon as it is there."""
        deadline = self._time() + timeout
        self._by_opaque[opaque] = (sink, deadline, code, timeout)
        if self._timer is None or deadline < self._sweep_at:
            self._set_timer(deadline)

    def answer(self, response: Command) -> bool:
        """Hand an answer over; False if nobody waits for it (any more)."""
        waiter = self._by_opaque.pop(response.opaque, None)
        if self.unsent:
            self.unsent.pop(response.opaque, None)  # a peer that answers what it was not asked
        if waiter is None or waiter[0].done():
            return False
        waiter[0].set_result(response)
        return True

    def forget(self, opaque: int) -> None:
        """Nobody waits for this answer any more; a request that was not sent yet is dropped."""
        self._by_opaque.pop(opaque, None)
        if self.unsent:
            self.unsent.pop(opaque, None)

    def fail(self, error: TransportError) -> None:
        """Tell everyone that no answer will come; stop the timer.

        Whose request was not sent yet gets `ConnectFailed`: the peer knows nothing of it.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiters, self._by_opaque = self._by_opaque, {}
        unsent, self.unsent = self.unsent, {}
        for opaque, (future, *_) in waiters.items():
            if not future.done():
                kind = ConnectFailed if opaque in unsent else type(error)
                future.set_exception(kind(error.address, error.reason))

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._sweep_at = deadline
        self._timer = self._loop.call_at(deadline, self._sweep)

    def _sweep(self) -> None:
        """Let everyone go whose time is up, then sleep until the next deadline."""
        self._timer = None
        now = self._loop.time()
        due = now + _SLACK
        late = [(key, value) for key, value in self._by_opaque.items() if value[1] <= due]
        for opaque, (future, _, code, timeout) in late:
            if self._by_opaque.pop(opaque, None) is None:
                continue  # a sink before it has ended the connection
            kind = RequestTimedOut if self.unsent.pop(opaque, None) is None else RequestNotSent
            if not future.done():
                future.set_exception(kind(self.peer, _name(code), timeout))
        if self._by_opaque:
            earliest = min(deadline for _, deadline, _, _ in self._by_opaque.values())
            self._set_timer(max(earliest, now + _PAUSE))


def _name(code: int) -> str:
    try:
        return RequestCode(code).name
    except ValueError:
        return f"request {code}"
