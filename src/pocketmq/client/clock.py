"""Wall-clock time and chance, for clients: the one place that asks the machine for them.

Timers do not come from here: they run on the event loop's own clock, which no step of the wall
clock moves, and which a test can put forward.
"""

import random
import time
from typing import Protocol


class Clock(Protocol):
    """What time it is."""

    def now(self) -> float:
        """Give seconds since 1970."""

    def now_ms(self) -> int:
        """Give the same in whole milliseconds, as the wire has it."""

    def tick(self) -> int:
        """Give a number larger than any given before in this process."""


class SystemClock:
    """The machine's own clock."""

    _last_tick = 0

    def now(self) -> float:
        """Give seconds since 1970."""
        return time.time()

    def now_ms(self) -> int:
        """Give the same in whole milliseconds."""
        return time.time_ns() // 1_000_000

    def tick(self) -> int:
        """Give nanoseconds since the machine started, or a little more."""
        cls = type(self)
        cls._last_tick = max(time.monotonic_ns(), cls._last_tick + 1)
        return cls._last_tick


def new_random() -> random.Random:
    """Give a source of chance of its own, seeded by the machine."""
    return random.Random()  # noqa: S311 - spreads load, keeps no secret
