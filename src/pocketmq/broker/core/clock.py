"""Noticing that the wall clock was set.

The watch compares it with the loop's own clock, which cannot be set. A machine that was suspended
looks the same: wall-clock time went on while the loop's stood still.
"""

import logging
from collections.abc import Callable

from pocketmq.net.clock import WallClock

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
