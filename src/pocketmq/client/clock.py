"""Wall-clock time and chance, for clients: the one place that asks the machine for them.

Timers do not come from here: they run on the event loop's own clock, which no step of the wall
clock moves, and which a test can put forward.
"""

import os
import random
import time
from collections.abc import Callable
from itertools import count
from typing import Protocol

_ticks = count()


class Clock(Protocol):
    """What time it is."""

    def now(self) -> float:
        """Give seconds since 1970."""

    def now_ms(self) -> int:
        """Give the same in whole milliseconds, as the wire has it."""

    def tick(self) -> int:
        """Give nanoseconds that no other call in this process is given."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Give seconds since 1970."""
        return time.time()

    def now_ms(self) -> int:
        """Give the same in whole milliseconds."""
        return time.time_ns() // 1_000_000

    def tick(self) -> int:
        """Give nanoseconds since the machine started, the last three of which only count.

        Threads may call this at the same time: counting is one step for all of them.
        """
        return time.monotonic_ns() // 1000 * 1000 + next(_ticks) % 1000


def stopwatch(clock: Clock) -> Callable[[], int]:
    """Give what tells nanoseconds, to measure how long things take as a clock sees it."""
    return time.monotonic_ns if type(clock) is SystemClock else clock.tick


def new_random() -> random.Random:
    """Give a source of chance of its own, seeded by the machine."""
    return random.Random()  # noqa: S311 - spreads load, keeps no secret


def process_id() -> int:
    """Give this process's number."""
    return os.getpid()


def utc_offset_ms() -> int:
    """Give how far local time is ahead of UTC."""
    return time.localtime().tm_gmtoff * 1000
