"""How a thread waits for calls of other threads that are in flight, such as to close.

Callers may be interrupted (KeyboardInterrupt, or whatever a signal handler raises) between any two
steps. A `threading.Condition` does not stand that: interrupted, it may stay locked for ever.
"""

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress

_CHECK_INTERVAL = 1.0
"""Seconds between checks, for a call that was interrupted before it could notify."""


class CallsInFlight:
    """Lets threads wait until calls have ended; each that ends notifies one of them."""

    def __init__(self) -> None:
        self._one_ended = threading.Lock()
        self._one_ended.acquire()

    def notify(self) -> None:
        """Wake a thread that waits: a call has ended."""
        with suppress(RuntimeError):  # it is to wake up already
            self._one_ended.release()

    def wait(self, have_ended: Callable[[], bool], timeout: float = math.inf) -> None:
        """Wait until `have_ended` returns true, at most `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while not have_ended() and (left := deadline - time.monotonic()) > 0:
            self.wait_for_one(min(left, _CHECK_INTERVAL))

    def wait_for_one(self, timeout: float = _CHECK_INTERVAL) -> None:
        """Wait until one more has ended, or for a while: the caller checks again."""
        self._one_ended.acquire(timeout=timeout)
