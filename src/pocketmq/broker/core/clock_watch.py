"""Noticing that the machine's clock was set, and saying so once.

Wall-clock time is held against the loop's own, which nobody can set. A machine that was suspended
looks the same: wall-clock time went on while the loop's stood still.
"""

import logging
from collections.abc import Callable

from pocketmq.broker.core.clock import Clock

logger = logging.getLogger("pocketmq.broker")

SMALLEST_JUMP = 3.0
"""Seconds from which a change of the clock is worth a line."""


class ClockWatch:
    """Looks at one clock. Belongs to the broker's loop."""

    def __init__(self, clock: Clock, steady: Callable[[], float]) -> None:
        self._clock = clock
        self._steady = steady
        self._difference = clock.now() - steady()
        self.when_set_back: list[Callable[[], None]] = []
        """Called after the clock was set back: what was to end by it would last too long."""

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
