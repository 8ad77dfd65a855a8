"""How much a producer has under way at once: a bound on sends and on their bytes.

Whoever finds no room waits in line. Belongs to one event loop.
"""

import asyncio
from collections import deque
from contextlib import suppress

from pocketmq.client.producer.window import ByteBudget


class Window:
    """Room for sends. Whoever entered leaves again, whatever became of the send."""

    __slots__ = ("_bytes", "_count", "_empty", "_line", "_most", "_vacant", "budget")

    def __init__(self, most: int, budget: ByteBudget) -> None:
        self._most = most
        self.budget = budget
        self._count = 0
        self._bytes = 0
        self._line: deque[tuple[int, asyncio.Future[bool]]] = deque()
        self._empty: list[asyncio.Future[None]] = []  # who wait for nothing under way
        self._vacant: list[asyncio.Future[None]] = []  # who wait for room for others

    def __len__(self) -> int:
        return self._count

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._line)

    def try_enter(self, size: int) -> bool:
        """Enter if there is room and nobody stands in line before."""
        if self._line or not self._has_room(size):
            return False
        self._count += 1
        self._bytes += size
        return True

    async def enter(self, size: int, timeout: float) -> bool:  # noqa: ASYNC109 - seldom waits
        """Wait for room, at most so many seconds; False if there was none."""
        if self.try_enter(size):
            return True
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        place = (size, turn)
        self._line.append(place)
        timer = loop.call_later(timeout, _give_up, turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.leave(size)  # room and cancellation came in the same moment
            raise
        finally:
            timer.cancel()
            with suppress(ValueError):
                self._line.remove(place)
            self._settle()  # one that needs less may have stood behind

    def leave(self, size: int) -> None:
        """Make room for others."""
        self._count -= 1
        self._bytes -= size
        if self._line or self._vacant or self._empty:
            self._settle()

    def answered(self, size: int, began: float, now: float) -> None:
        """Adapt the byte limit to a try that was answered, or timed out, at `now`."""
        self.budget.answered(size, began, now, self._bytes)

    async def room(self) -> None:
        """Wait until there is room for one more; it is not kept."""
        while self._line or not self._has_room(0):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._vacant.append(waiter)
            await waiter

    async def drained(self) -> None:
        """Wait until nothing is under way; as long as somebody waits in line, something is."""
        while self._count:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._empty.append(waiter)
            await waiter

    def _has_room(self, size: int) -> bool:
        if not self._count:
            return True
        return self._count < self._most and self._bytes + size <= self.budget.limit

    def _settle(self) -> None:
        """Let in those in front of the line for whom there is room, and tell who waits for that."""
        while self._line:
            size, turn = self._line[0]
            if not turn.done():
                if not self._has_room(size):
                    return
                self._count += 1
                self._bytes += size
                turn.set_result(True)
            self._line.popleft()
        self._vacant = _wake(self._vacant)
        if not self._count:
            self._empty = _wake(self._empty)


def _give_up(turn: asyncio.Future[bool]) -> None:
    if not turn.done():
        turn.set_result(False)


def _wake(waiters: list[asyncio.Future[None]]) -> list[asyncio.Future[None]]:
    """Wake all; give who waits now, which is nobody."""
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    return []
