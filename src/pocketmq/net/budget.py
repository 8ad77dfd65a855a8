"""One memory budget for all connections of a server: who waits under pressure, who is cut off.

Counts bytes of unfinished frames, of requests not handed over yet and of unsent answers. Up to
three quarters of the limit nobody notices. Above that the server is under pressure, until it is
down to half. Large frames are read a few at a time then, those that lack least first. If a quarter
of the limit are unsent answers, further ones are small, and only for peers that took the last.
Peers slower than a rate that doubles every five seconds are cut off, the largest holders first.
Small frames are never held back. Belongs to one event loop.
"""

import asyncio
from heapq import nlargest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pocketmq.net.connection import Connection

SMALL = 64 * 1024
"""A frame up to this size is read whatever the pressure."""
_TICK = 0.1  # seconds between two looks under pressure
_CALM_TICK = 5.0  # seconds between two looks at unfinished frames
_WINDOW = 1.0  # seconds over which a peer's rate is measured
_DOUBLING = 5.0  # seconds of pressure after which a peer has to be twice as fast
_WOKEN = 64  # connections that try again for answers at each look
_SLOWEST = 64 * 1024  # bytes in a second below which a peer counts as slow, at first
_SLOWEST_FRAME = 64 * 1024  # bytes of an unfinished frame that must come in `frame_stall` seconds


class Holding:
    """What one connection makes its server hold, and how it gets on."""

    __slots__ = (
        "frame", "frame_at", "frame_mark", "granted", "mark", "marked_at", "paused", "unsent",
    )  # fmt: skip

    def __init__(self) -> None:
        self.frame = 0  # bytes read and not handed over
        self.unsent = 0
        self.granted = False  # may read on under pressure
        self.paused = False  # must not, until there is room
        self.mark = 0  # bytes moved when the window began
        self.marked_at = 0.0
        self.frame_mark = 0  # the same for the unfinished frame
        self.frame_at = 0.0

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self.frame + self.unsent


class MemoryBudget:
    """The bytes one server holds for its peers."""

    def __init__(self, limit: int, frame_stall: float) -> None:
        self.limit = limit
        self.used = 0
        self.tight = False
        """Whether answers should be small, and none be made for who has not taken the last."""
        self._line = limit - limit // 4
        self._calm = limit // 2
        self._frame_stall = frame_stall
        self._unsent = 0
        self._granted = 0  # bytes that those who may read on still lack
        self._pressed_at: float | None = None
        self._holders: dict[Connection, Holding] = {}
        self._deferred: dict[Connection, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    # What connections tell

    def note(
        self, connection: "Connection", frame: int, unsent: int, *, finished: bool = False
    ) -> None:
        """Take note of what a connection holds now; `finished`: a frame of it has ended."""
        holding = self._holders.get(connection)
        if holding is None:
            if not frame and not unsent:
                return
            holding = self._begin(connection)
        elif finished:
            self._mark_frame(connection, holding)
            holding.granted = False
        self._count(holding, frame, unsent)
        if not frame and not unsent:
            self._end(connection)
        elif self._pressed_at is None and self.used > self._line:
            self._pressed_at = self._now()
            self._set_timer(0.0)
        if self._pressed_at is not None:
            self._steer(connection, holding)

    def forget(self, connection: "Connection") -> None:
        """Give back what a connection held: it is gone."""
        holding = self._holders.get(connection)
        if holding is not None:
            self._count(holding, 0, 0)
            self._end(connection)
        self._deferred.pop(connection, None)

    def defer(self, connection: "Connection") -> None:
        """Have a connection try again with its requests soon: there may be room for answers."""
        self._deferred[connection] = None
        if self._timer is None:
            self._set_timer(_TICK)

    def close(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Under pressure

    def _steer(self, connection: "Connection", holding: Holding) -> None:
        """Let a peer send the rest of its frame, or have it wait for a look at all of them."""
        self.tight = self._unsent > self.limit // 4
        if holding.granted or holding.paused or not connection.is_large_frame:
            return
        missing = connection.missing
        if self._granted + missing <= self.limit - self._line:
            self._granted += missing
            holding.granted = True
        else:
            holding.paused = True
            connection.hold_reading(True)

    def _look(self) -> None:
        self._timer = None
        for connection, holding in tuple(self._holders.items()):
            self._count(holding, connection.held_frame, connection.unsent)
            if not holding.size:
                self._end(connection)
        now = self._now()
        self._cut_stalled_frames(now)
        if self.used > self._line:
            self._pressed_at = now if self._pressed_at is None else self._pressed_at
        if self._pressed_at is not None:
            self._cut_slow(now, self._pressed_at)
        if self.used <= self._calm:
            self._pressed_at = None
        self.tight = self._pressed_at is not None and self._unsent > self.limit // 4
        self._share_out()
        self._wake()
        if self._holders or self._deferred:
            self._set_timer(_CALM_TICK if self._pressed_at is None else _TICK)

    def _wake(self) -> None:
        """Have those try again that took most so far: they are likely to take more."""
        count = _WOKEN if self.tight else len(self._deferred)
        for connection in nlargest(count, self._deferred, key=lambda each: each.taken):
            del self._deferred[connection]
            connection.go_on()

    def _share_out(self) -> None:
        """Choose who reads on: all, or under pressure those that lack least, at least one."""
        self._granted = 0
        room = max(self.limit - max(self.used, self._line), 0)
        reading = [each for each in self._holders.items() if each[0].is_large_frame]
        for connection, holding in sorted(reading, key=lambda each: each[0].missing):
            missing = connection.missing
            if self._pressed_at is None:
                holding.granted = False
                self._resume(connection, holding)
            elif not self._granted or self._granted + missing <= room:
                self._granted += missing
                holding.granted = True
                self._resume(connection, holding)
            else:
                holding.granted = False
                if not holding.paused:
                    holding.paused = True
                    connection.hold_reading(True)

    def _resume(self, connection: "Connection", holding: Holding) -> None:
        if holding.paused:
            holding.paused = False
            self._mark(connection, holding)
            self._mark_frame(connection, holding)
            connection.hold_reading(False)

    def _cut_slow(self, now: float, pressed_at: float) -> None:
        """Cut off peers that are too slow for the pressure, the largest first, until it ends."""
        rate = _SLOWEST * 2 ** min((now - pressed_at) / _DOUBLING, 20.0)
        slow = []
        fair = self.used / (2 * len(self._holders) or 1)  # who holds less is not the cause
        for connection, holding in self._holders.items():
            since = now - holding.marked_at
            if holding.marked_at < pressed_at or not self._is_awaited(connection, holding):
                self._mark(connection, holding)
            elif since >= _WINDOW:
                moved = connection.moved - holding.mark
                if moved >= rate * since:
                    self._mark(connection, holding)
                elif holding.size >= fair or holding.granted:
                    slow.append((connection, holding))
        slow.sort(key=lambda each: each[1].size, reverse=True)
        for connection, holding in slow:
            if self.used <= self._calm:
                return
            reason = (
                f"too slow under memory pressure: it holds {holding.size} bytes, all connections "
                f"{self.used} of {self.limit}"
            )
            self._cut(connection, holding, reason)

    def _cut_stalled_frames(self, now: float) -> None:
        for connection, holding in tuple(self._holders.items()):
            if not connection.awaits_frame or holding.paused:
                self._mark_frame(connection, holding)
            elif now - holding.frame_at >= self._frame_stall:
                came = connection.received - holding.frame_mark
                if came < _SLOWEST_FRAME:
                    reason = (
                        f"{came} bytes of a frame in {now - holding.frame_at:.0f} s, "
                        f"{holding.frame} in all; at least {_SLOWEST_FRAME} have to come in "
                        f"{self._frame_stall:g} s"
                    )
                    self._cut(connection, holding, reason)
                else:
                    self._mark_frame(connection, holding)

    def _cut(self, connection: "Connection", holding: Holding, reason: str) -> None:
        self._count(holding, 0, 0)
        self._end(connection)
        connection.cut_off(reason)

    def _is_awaited(self, connection: "Connection", holding: Holding) -> bool:
        """Tell whether it is the peer's turn: to take answers, or to send the rest of a frame."""
        return bool(holding.unsent) or (connection.awaits_frame and not holding.paused)

    # Counting

    def _begin(self, connection: "Connection") -> Holding:
        holding = self._holders[connection] = Holding()
        self._mark(connection, holding)
        self._mark_frame(connection, holding)
        if self._timer is None:
            self._set_timer(_CALM_TICK)
        return holding

    def _end(self, connection: "Connection") -> None:
        holding = self._holders.pop(connection)
        if holding.paused:
            connection.hold_reading(False)

    def _count(self, holding: Holding, frame: int, unsent: int) -> None:
        self.used += frame + unsent - holding.frame - holding.unsent
        self._unsent += unsent - holding.unsent
        holding.frame, holding.unsent = frame, unsent

    def _mark(self, connection: "Connection", holding: Holding) -> None:
        holding.mark, holding.marked_at = connection.moved, self._now()

    def _mark_frame(self, connection: "Connection", holding: Holding) -> None:
        holding.frame_mark, holding.frame_at = connection.received, self._now()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _set_timer(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(delay, self._look)
