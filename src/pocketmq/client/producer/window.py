"""How much a producer has in flight at once: a bound on sends and on the bytes of their bodies.

A send that finds no capacity waits its turn, first come, first served: this is the back-pressure
that `submit` and `send` apply to their callers. The byte limit adapts, so that responses arrive
well within the send timeout: bytes beyond what brokers store in that time only wait, on this side
or in the network, while their deadline runs.
"""

import asyncio
from collections import OrderedDict

START = 4 * 1024 * 1024
"""Bytes of the first limit."""
LEAST = 256 * 1024
"""The limit never falls below this; one larger message is always allowed alone."""
_QUICK = 1 / 8
"""The limit grows while responses take at most this share of the timeout, ..."""
_SLOW = 1 / 4
"""... and shrinks when they take at least this share."""


class ByteBudget:
    """The current limit of bytes in flight; never above `most`. `timeout` is a send's.

    Pure arithmetic: the clock is the caller's. Written by one event loop; other threads may read
    `limit`.
    """

    __slots__ = ("_most", "_shrunk_at", "_slow", "limit", "quick")

    def __init__(self, most: int, timeout: float) -> None:
        self._most = most
        self.quick = timeout * _QUICK
        """Seconds within which a response is quick."""
        self._slow = timeout * _SLOW
        self._shrunk_at = float("-inf")
        self.limit = min(most, START)

    def answered(self, size: int, began: float, now: float, in_flight: int) -> None:
        """Adapt the limit to a request of `size` bytes that was answered, or timed out, at `now`.

        As in TCP's slow start, each quick response adds its own size, so that the limit doubles
        with every round trip. It grows only while at least half of it is used: what was never in
        flight proves nothing. All requests that began before a reduction count once.
        """
        took = now - began
        if took <= self.quick:
            if in_flight * 2 >= self.limit:
                self.limit = min(self._most, self.limit + size)
        elif took >= self._slow and began > self._shrunk_at:
            self._shrunk_at = now
            lowered = int(self.limit * max(0.25, self.quick / took))
            self.limit = min(self.limit, max(lowered, LEAST))


class SendWindow:
    """Capacity for sends. Every `enter` is followed by one `leave` or `answered`.

    Belongs to one event loop.
    """

    __slots__ = ("_count", "_empty", "_line", "_most", "_vacant", "budget", "bytes")

    def __init__(self, most: int, budget: ByteBudget) -> None:
        self._most = most
        self.budget = budget
        self._count = 0
        self.bytes = 0
        """Bytes in flight."""
        # Sends that wait, with their bytes and messages. Of many thousands, any can be removed.
        self._line: OrderedDict[asyncio.Future[bool], tuple[int, int]] = OrderedDict()
        self._empty: list[asyncio.Future[None]] = []  # waiters for nothing in flight
        self._vacant: list[asyncio.Future[None]] = []  # waiters for free capacity

    def __len__(self) -> int:
        return self._count

    @property
    def waiting(self) -> int:
        """The number of sends that wait for capacity."""
        return len(self._line)

    def try_enter(self, size: int, amount: int = 1) -> bool:
        """Enter, with `amount` messages, if there is capacity and no earlier send waits for it."""
        count, held = self._count, self.bytes + size
        if self._line or (count and (count + amount > self._most or held > self.budget.limit)):
            return False
        self._count, self.bytes = count + amount, held
        return True

    async def enter(self, size: int, timeout: float, amount: int = 1) -> bool:  # noqa: ASYNC109 - seldom waits
        """Wait for capacity, at most `timeout` seconds; False if there was none."""
        if self.try_enter(size, amount):
            return True
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        self._line[turn] = (size, amount)
        timer = loop.call_later(timeout, _time_out, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            # Admitted and cancelled in the same loop iteration: the place would leak otherwise.
            if turn.done() and not turn.cancelled() and turn.result():
                self.leave(size, amount)
            raise
        finally:
            timer.cancel()
            self._line.pop(turn, None)
            self._admit()  # a smaller send may have waited behind this one

    def leave(self, size: int, amount: int = 1) -> None:
        """Free the capacity of a send that has ended."""
        self._count -= amount
        self.bytes -= size
        if self._line or self._vacant or self._empty:
            self._admit()

    def answered(self, size: int, began: float, now: float, amount: int = 1) -> None:
        """Free the capacity of messages that were answered; the limit adapts to how long it took.

        What `ByteBudget.answered` and `leave` do, in one step: it is taken for each read. All of
        them left at `began`.
        """
        budget, held = self.budget, self.bytes
        if now - began > budget.quick or held * 2 >= budget.limit:
            budget.answered(size, began, now, held)
        self._count -= amount
        self.bytes = held - size
        if self._line or self._vacant or self._empty:
            self._admit()

    async def room(self) -> None:
        """Wait until there is capacity for one more send; it is not reserved."""
        while self._line or not self._has_room(0, 1):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._vacant.append(waiter)
            await waiter

    async def drained(self) -> None:
        """Wait until nothing is in flight; sends that wait for capacity count as in flight."""
        while self._count:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._empty.append(waiter)
            await waiter

    def _has_room(self, size: int, amount: int) -> bool:
        if not self._count:
            return True
        return self._count + amount <= self._most and self.bytes + size <= self.budget.limit

    def _admit(self) -> None:
        """Admit waiting sends in their order, as far as there is capacity, and wake waiters."""
        while self._line:
            turn, (size, amount) = next(iter(self._line.items()))
            if not turn.done():
                if not self._has_room(size, amount):
                    return
                # Counted here, not when the waiter runs: a later `try_enter` must not overtake it.
                self._count += amount
                self.bytes += size
                turn.set_result(True)
            del self._line[turn]
        self._vacant = _wake(self._vacant)
        if not self._count:
            self._empty = _wake(self._empty)


def _time_out(turn: asyncio.Future[bool]) -> None:
    if not turn.done():
        turn.set_result(False)


def _wake(waiters: list[asyncio.Future[None]]) -> list[asyncio.Future[None]]:
    """Wake all waiters; return the new, empty list of them."""
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    return []
