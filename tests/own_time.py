"""Time as processes have it: without what they waited for processors that others used.

A promise in seconds is one for a machine that has nothing else to do. There the kernel lets threads
run when they can, and this is the time of the clock; on a busy machine it is less. What processes
wait for otherwise, such as sleeps, locks, disks and each other, counts.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.server_process import children_of


def own_time(*pids: int) -> float:
    """Return a clock's time in seconds, without waits of this process and these, with children."""
    return time.monotonic() - sum(map(_waited, {*_family(os.getpid()), *pids}))


def _family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(FileNotFoundError, ProcessLookupError):
        for child in children_of(pid):
            yield from _family(child)


def _waited(pid: int) -> float:
    """Return how long the threads of a process waited for a processor, of all those it has now."""
    waited = 0
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                waited += int((task / "schedstat").read_text().split()[1])
    return waited / 1e9
