"""A loop whose clock stands still while its thread waits for a processor that others use.

A client gives a broker three seconds to answer. Where both are on one loop, and its thread gets no
processor for four, the clock of the machine says that the time is over before either could read
what has come. On this loop no time has passed then: what can be done comes before what is due.
"""

import asyncio
import selectors
import time
from contextlib import suppress
from pathlib import Path

LONG = 0.02
"""Seconds that are not worth a question to the kernel."""
_WAITED = Path("/proc/thread-self/schedstat")


def waited() -> float:
    """Return the seconds that this thread has waited for a processor; 0 if the kernel is silent."""
    with suppress(OSError):
        return int(_WAITED.read_text().split()[1]) / 1e9
    return 0.0


class _Watching(selectors.DefaultSelector):
    """Notices that its thread could not run: between two looks at sockets, or when one was due."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = 0.0
        """Seconds in which the thread could not run, though it had something to do."""
        self._ended = self._asked = time.monotonic()
        self._waited = waited()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = time.monotonic()
        if began - self._ended > LONG:
            self.lost += min(began - self._ended, self._waited_since(began))
        found = super().select(timeout)
        self._ended = time.monotonic()
        late = 0.0 if timeout is None else self._ended - began - max(0.0, timeout)
        if late > LONG:  # the timer for which it looked no longer is due, but not before what came
            self.lost += late + (0.001 if found else 0.0)
        if late > LONG or self._ended - self._asked > LONG:
            self._waited_since(self._ended)
        return found

    def _waited_since(self, now: float) -> float:
        before, self._waited, self._asked = self._waited, waited(), now
        return self._waited - before


class SteadyLoop(asyncio.SelectorEventLoop):
    """A loop with real sockets, in the time that its thread had."""

    def __init__(self) -> None:
        self._watching = _Watching()
        super().__init__(self._watching)

    def time(self) -> float:
        return super().time() - self._watching.lost
