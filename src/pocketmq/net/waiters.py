"""The open requests of one connection: who waits for which answer, and until when.

One timer serves all of them. Knows no socket.
"""

import asyncio

from pocketmq.errors import RequestTimedOut, TransportError
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command

_SLACK = 0.001  # loops count in milliseconds at worst: a timer may fire this much early
_PAUSE = 0.005  # between sweeps, so that many deadlines close together cost one sweep


class _Waiter:
    __slots__ = ("code", "deadline", "future", "timeout")

    def __init__(
        self, future: asyncio.Future[Command], code: int, timeout: float, deadline: float
    ) -> None:
        self.future = future
        self.code = code
        self.timeout = timeout
        self.deadline = deadline


class Waiters:
    """Answers awaited, by opaque number."""

    __slots__ = ("_by_opaque", "_loop", "_sweep_at", "_timer", "peer")

    def __init__(self, loop: asyncio.AbstractEventLoop, peer: str) -> None:
        self._loop = loop
        self.peer = peer
        self._by_opaque: dict[int, _Waiter] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._sweep_at = 0.0

    def __len__(self) -> int:
        return len(self._by_opaque)

    def __contains__(self, opaque: int) -> bool:
        return opaque in self._by_opaque

    def add(self, opaque: int, code: int, timeout: float) -> asyncio.Future[Command]:
        """Give the future that will hold the answer, or `RequestTimedOut` once time is up."""
        loop = self._loop
        future: asyncio.Future[Command] = loop.create_future()
        deadline = loop.time() + timeout
        self._by_opaque[opaque] = _Waiter(future, code, timeout, deadline)
        if self._timer is None or deadline < self._sweep_at:
            self._set_timer(deadline)
        return future

    def answer(self, response: Command) -> bool:
        """Hand an answer over; False if nobody waits for it (any more)."""
        waiter = self._by_opaque.pop(response.opaque, None)
        if waiter is None or waiter.future.done():
            return False
        waiter.future.set_result(response)
        return True

    def forget(self, opaque: int) -> None:
        """Nobody waits for this answer any more."""
        self._by_opaque.pop(opaque, None)

    def fail(self, error: TransportError) -> None:
        """Tell everyone that no answer will come; stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiters, self._by_opaque = self._by_opaque, {}
        for waiter in waiters.values():
            if not waiter.future.done():
                waiter.future.set_exception(type(error)(error.address, error.reason))

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
        late = [(key, value) for key, value in self._by_opaque.items() if value.deadline <= due]
        for opaque, waiter in late:
            del self._by_opaque[opaque]
            if not waiter.future.done():
                waiter.future.set_exception(
                    RequestTimedOut(self.peer, _name(waiter.code), waiter.timeout)
                )
        if self._by_opaque:
            earliest = min(waiter.deadline for waiter in self._by_opaque.values())
            self._set_timer(max(earliest, now + _PAUSE))


def _name(code: int) -> str:
    try:
        return RequestCode(code).name
    except ValueError:
        return f"request {code}"
