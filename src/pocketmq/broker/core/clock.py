"""What time it is, for a broker: one place, so that a test can say otherwise."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time."""

    def now(self) -> float:
        """Give seconds since 1970."""

    def now_ms(self) -> int:
        """Give the same in whole milliseconds, as the wire has it."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Give seconds since 1970."""
        return time.time()

    def now_ms(self) -> int:
        """Give the same in whole milliseconds."""
        return time.time_ns() // 1_000_000
