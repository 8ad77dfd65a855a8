"""A condition that an interrupted thread does not leave locked.

A thread may be interrupted (KeyboardInterrupt, or whatever a signal handler raises) between any two
steps of Python. With `threading.Condition` even `with` takes several, after the first of which the
lock is held and would never be released: the loop, which needs it for the results of futures,
would wait for ever. Here each of the steps is one of the compiled lock.
"""

import threading
from contextlib import suppress
from typing import Any

_Lock: Any = type(threading.RLock())  # has no name of its own


class SteadyCondition(_Lock):  # type: ignore[misc] # mypy takes it for a function
    """What futures need of `threading.Condition`: its lock, `wait` and `notify_all`."""

    def __init__(self) -> None:
        self._sleepers: list[threading.Lock] = []

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, wait until notified or for `timeout` seconds, acquire it again."""
        sleeper = threading.Lock()
        sleeper.acquire()
        self._sleepers.append(sleeper)
        held: list[object] = []
        try:
            # However often this thread has acquired it: a signal handler that waits for the same
            # future may have come in between. In one step: interrupted, what is held would be lost.
            held.extend(map(_Lock._release_save, (self,)))  # noqa: SLF001 - the parent's
            return sleeper.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
        finally:
            if held:  # not interrupted while it waits, as `acquire` would be
                self._acquire_restore(held[0])
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    def notify_all(self) -> None:
        """Wake all threads that wait; with the lock held."""
        for sleeper in self._sleepers:
            with suppress(RuntimeError):  # it was notified before
                sleeper.release()
        self._sleepers.clear()
