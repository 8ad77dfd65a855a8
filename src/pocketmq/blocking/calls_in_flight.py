"""How a thread waits for calls of other threads that are in flight, such as to close.

Callers may be interrupted (KeyboardInterrupt, or whatever a signal handler raises) between any two
steps. A `threading.Condition` does not stand that: interrupted, it may stay locked for ever.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

_CHECK_INTERVAL = 1.0
"""Seconds between checks, for a call that was interrupted before it could notify."""


class CallsInFlight:
    """Lets threads wait until calls have ended; each that ends wakes one that waits, in turn."""

    def __init__(self) -> None:
        # Adding and removing is one step for all threads. Each sleeper has a lock of its own, which
        # is woken once: so no two calls that end wake the same one.
        self.sleepers: deque[threading.Lock] = deque()
        """The threads that wait, longest first."""

    def notify(self) -> None:
        """Wake the thread that has waited longest: a call has ended."""
        with suppress(IndexError):  # none waits
            self.sleepers.popleft().release()

    def notify_all(self) -> None:
        """Wake all threads that wait."""
        for _ in range(len(self.sleepers)):
            self.notify()

    def wait(self, have_ended: Callable[[], bool], timeout: float = math.inf) -> None:
        """Wait until `have_ended` returns true, at most `timeout` seconds."""
        self.wait_for(lambda: have_ended() or None, timeout)
        self.notify()  # another thread may wait for the same

    def wait_for(self, find: Callable[[], T | None], timeout: float = math.inf) -> T | None:
        """Return what `find` returns, once it is not None; None after `timeout` seconds.

        It is called at first and after calls that ended; what it raises, this raises.
        """
        deadline, woken = time.monotonic() + timeout, None
        try:
            while True:
                if woken is None or woken not in self.sleepers:
                    woken = threading.Lock()
                    woken.acquire()
                    self.sleepers.append(woken)  # before it looks, so that it misses no call
                found = find()
                if found is not None:
                    return found
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                woken.acquire(timeout=min(left, _CHECK_INTERVAL))
        finally:
            try:
                if woken is not None:
                    self.sleepers.remove(woken)
            except ValueError:  # a call that ended has just woken this thread, for nothing
                self.notify()
