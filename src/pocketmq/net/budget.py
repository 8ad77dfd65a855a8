"""One memory budget for all connections of a server: back-pressure first, then cutting off.

Counts bytes of unfinished frames, of requests not handed over yet and of unsent answers. Up to
three quarters of the limit nothing happens. Above that the server is under pressure, until the sum
is down to half of the limit:

- Large frames are read a few at a time, those that lack least first: they free memory soonest.
  Small frames are always read, so that heartbeats and acknowledgements get through.
- If a quarter of the limit is unsent answers, further answers are small, and only for peers that
  took the last one (`tight`). Requests that cannot be answered are put back and deferred.
- Peers slower than a rate that doubles every five seconds are cut off, the largest holders first.

The rate must grow: with a fixed one, many peers that are just fast enough would hold the server at
its limit for ever. Belongs to one event loop, as do the connections it counts.
"""

import asyncio
from heapq import nlargest

from pocketmq.net.held_memory import HeldMemory

_TICK = 0.1  # seconds between two checks under pressure
_CALM_TICK = 5.0  # seconds between two checks of unfinished frames
_WINDOW = 1.0  # seconds over which a peer's rate is measured
_DOUBLING = 5.0  # seconds of pressure after which a peer has to be twice as fast
_WOKEN = 64  # deferred connections that try again at each check
_SLOWEST = 64 * 1024  # bytes a second below which a peer counts as slow, at first
_SLOWEST_FRAME = 64 * 1024  # bytes of an unfinished frame that must come in `frame_stall` seconds


class MemoryBudget:
    """The bytes that one server holds for its peers."""

    def __init__(self, limit: int, frame_stall: float) -> None:
        self.limit = limit
        self.used = 0
        self.tight = False
        """Whether answers must be small, and only for peers that took their last one."""
        self._line = limit - limit // 4
        self._calm = limit // 2
        self._frame_stall = frame_stall
        self._unsent = 0
        self._granted = 0  # bytes that the connections which may read on still lack
        self._pressed_at: float | None = None
        self._holders: dict[HeldMemory, None] = {}  # those that hold anything, in order
        self._deferred: dict[HeldMemory, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0  # when the timer should fire

    # What connections report

    def note(self, held: HeldMemory, frame: int, unsent: int, *, finished: bool = False) -> None:
        """Count what a connection holds now; `finished`: a frame of it was completed."""
        if held not in self._holders:
            if not frame and not unsent:
                return
            self._begin(held)
        elif finished:
            self._mark_frame(held)
            held.granted = False
        self._count(held, frame, unsent)
        if not frame and not unsent:
            self._end(held)
        elif self._pressed_at is None and self.used > self._line:
            self._pressed_at = self._now()
            self._set_timer(0.0)
        if self._pressed_at is not None:
            self._steer(held)

    def forget(self, held: HeldMemory) -> None:
        """Free what a connection held: it is closed, or counts elsewhere."""
        if held in self._holders:
            self._count(held, 0, 0)
            self._end(held)
        self._deferred.pop(held, None)

    def defer(self, held: HeldMemory) -> None:
        """Let a connection retry its requests soon, when there may be memory for answers."""
        self._deferred[held] = None
        if self._timer is None:
            self._set_timer(_TICK)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Under pressure

    def _steer(self, held: HeldMemory) -> None:
        """Grant a large frame its rest at once if that fits, else pause it until `_share_out`."""
        self.tight = self._unsent > self.limit // 4
        if held.granted or held.paused or not held.is_large_frame:
            return
        missing = held.missing
        if self._granted + missing <= self.limit - self._line:
            self._granted += missing
            held.granted = True
        else:
            held.pause_reading(True)

    def _check(self) -> None:
        self._timer = None
        now = self._now()
        self._leave_out(now - self._due - _TICK, now)
        for held in tuple(self._holders):
            self._count(held, held.read_bytes, held.unsent_bytes)
            if not held.size:
                self._end(held)
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
        """Resume deferred connections that took most so far: they are likely to take more."""
        count = _WOKEN if self.tight else len(self._deferred)
        for held in nlargest(count, self._deferred, key=lambda each: each.taken):
            del self._deferred[held]
            held.resume_requests()

    def _share_out(self) -> None:
        """Choose who reads on: all, or under pressure those that lack least, at least one.

        At least one, even if it does not fit: if all were paused, no frame would ever be complete
        and none of the memory would be freed.
        """
        self._granted = 0
        free = max(self.limit - max(self.used, self._line), 0)
        reading = [held for held in self._holders if held.is_large_frame]
        for held in sorted(reading, key=lambda each: each.missing):
            missing = held.missing
            if self._pressed_at is None:
                held.granted = False
                self._resume(held)
            elif not self._granted or self._granted + missing <= free:
                self._granted += missing
                held.granted = True
                self._resume(held)
            else:
                held.granted = False
                if not held.paused:
                    held.pause_reading(True)

    def _resume(self, held: HeldMemory) -> None:
        if held.paused:
            # Its windows restart: the time in which we did not read is not the peer's.
            self._mark(held)
            self._mark_frame(held)
            held.pause_reading(False)

    def _cut_slow(self, now: float, pressed_at: float) -> None:
        """Cut off peers that are too slow for the pressure, the largest first, until it ends."""
        rate = _SLOWEST * 2 ** min((now - pressed_at) / _DOUBLING, 20.0)
        slow = []
        fair = self.used / (2 * len(self._holders) or 1)  # who holds less is not the cause
        for held in self._holders:
            since = now - held.marked_at
            if held.marked_at < pressed_at or not held.awaits_peer:
                self._mark(held)
            elif since >= _WINDOW:
                moved = held.moved - held.mark
                if moved >= rate * since:
                    self._mark(held)
                elif held.size >= fair or held.granted:
                    slow.append(held)
        slow.sort(key=lambda each: each.size, reverse=True)
        for held in slow:
            if self.used <= self._calm:
                return
            reason = (
                f"too slow under memory pressure: it holds {held.size} bytes, all connections "
                f"{self.used} of {self.limit}"
            )
            self._cut(held, reason)

    def _cut_stalled_frames(self, now: float) -> None:
        for held in tuple(self._holders):
            if not held.awaits_frame or held.paused:
                self._mark_frame(held)
            elif now - held.frame_at >= self._frame_stall:
                came = held.received - held.frame_mark
                if came < _SLOWEST_FRAME:
                    reason = (
                        f"{came} bytes of a frame in {now - held.frame_at:.0f} s, "
                        f"{held.frame} in all; at least {_SLOWEST_FRAME} have to come in "
                        f"{self._frame_stall:g} s"
                    )
                    self._cut(held, reason)
                else:
                    self._mark_frame(held)

    def _cut(self, held: HeldMemory, reason: str) -> None:
        self._count(held, 0, 0)
        self._end(held)
        held.cut_off(reason)

    # Counting

    def _begin(self, held: HeldMemory) -> None:
        self._holders[held] = None
        held.frame = held.unsent = 0
        held.granted = held.paused = False
        self._mark(held)
        self._mark_frame(held)
        if self._timer is None:
            self._set_timer(_CALM_TICK)

    def _end(self, held: HeldMemory) -> None:
        del self._holders[held]
        if held.paused:
            held.pause_reading(False)

    def _count(self, held: HeldMemory, frame: int, unsent: int) -> None:
        self.used += frame + unsent - held.frame - held.unsent
        self._unsent += unsent - held.unsent
        held.frame, held.unsent = frame, unsent

    def _mark(self, held: HeldMemory) -> None:
        held.mark, held.marked_at = held.moved, self._now()

    def _mark_frame(self, held: HeldMemory) -> None:
        held.frame_mark, held.frame_at = held.received, self._now()

    def _leave_out(self, stall: float, now: float) -> None:
        """Move the windows by the time the loop stood still, in which it read nothing."""
        if stall <= 0:
            return
        for held in self._holders:
            held.marked_at = min(held.marked_at + stall, now)
            held.frame_at = min(held.frame_at + stall, now)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _set_timer(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = self._now() + delay
        self._timer = asyncio.get_running_loop().call_later(delay, self._check)
