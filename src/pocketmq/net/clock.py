"""Wall-clock time, for clients and servers: all code asks a `WallClock`, so that a test can set it.

Timers run on the event loop's own clock, which changes of the wall clock do not affect.
"""

import time
from typing import Protocol


class WallClock(Protocol):
    """A source of wall-clock time."""

    def now(self) -> float:
        """Return seconds since 1970."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970, as wire fields have them."""


class SystemWallClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def now_ms(self) -> int:
        """Return milliseconds since 1970."""
        return time.time_ns() // 1_000_000
