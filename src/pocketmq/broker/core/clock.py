"""The wall clock of a broker, and noticing that it was set.

All code asks a `WallClock`, so that a test can set the time. The watch compares it with the loop's
own clock, which cannot be set. A machine that was suspended looks the same: wall-clock time went on
while the loop's stood still.
"""

import logging
import time
from collections.abc import Callable
from typing import Protocol


class WallClock(Protocol):
    """Wall-clock time."""

    def now(self) -> float:
        """Return seconds since 1970."""

    def now_ms(self) -> int:
        """Return the same in whole milliseconds, as the wire has it."""


class SystemWallClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def now_ms(self) -> int:
        """Return the same in whole milliseconds."""
        return time.time_ns() // 1_000_000


logger = logging.getLogger("pocketmq.broker")

SMALLEST_JUMP = 3.0
"""Seconds from which a jump of the clock is logged."""


class ClockWatch:
    """Notices jumps of the wall clock. Belongs to the broker's loop."""

    def __init__(self, clock: WallClock, steady: Callable[[], float]) -> None:
        self._clock = clock
        self._steady = steady
        self._difference = clock.now() - steady()
        self.when_set_back: list[Callable[[], None]] = []
        """Called after the clock was set back: what ends by it would last too long."""

    def look(self) -> None:
        """Compare the clocks; call this about once a second."""
        difference = self._clock.now() - self._steady()
        jump, self._difference = difference - self._difference, difference
        if abs(jump) >= SMALLEST_JUMP:
            direction = "forward" if jump > 0 else "back"
            logger.warning(
                "system clock jumped %s: seconds=%+.1f; delays, timers and retention go by the "
                "new time",
                direction,
                jump,
            )
        if jump <= -SMALLEST_JUMP:
            for told in self.when_set_back:
                told()
