"""Wall-clock time and random numbers for clients: the one place that asks the machine for them.

Timers do not come from here: they run on the event loop's own clock, which changes of the wall
clock do not affect, and which a test can advance.
"""

import os
import random
import time
from collections.abc import Callable
from itertools import count
from typing import Protocol

from pocketmq.net.clock import SystemWallClock, WallClock

_ticks = count()


class Clock(WallClock, Protocol):
    """Wall-clock time, and ticks that order what happens in this process."""

    def tick(self) -> int:
        """Return nanoseconds, different for each call in this process."""


class SystemClock(SystemWallClock):
    """The machine's own clock."""

    def tick(self) -> int:
        """Return nanoseconds since the machine started, the last three digits a counter.

        Any thread may call it: advancing the counter is atomic.
        """
        return time.monotonic_ns() // 1000 * 1000 + next(_ticks) % 1000


def stopwatch(clock: Clock) -> Callable[[], int]:
    """Return a function that returns nanoseconds, to measure durations by this clock."""
    return time.monotonic_ns if type(clock) is SystemClock else clock.tick


def new_random() -> random.Random:
    """Return a new random generator, seeded by the machine."""
    return random.Random()  # noqa: S311 - spreads load, keeps no secret


def process_id() -> int:
    """Return the process id."""
    return os.getpid()


def utc_offset_ms() -> int:
    """Return the milliseconds that local time is ahead of UTC."""
    return time.localtime().tm_gmtoff * 1000
