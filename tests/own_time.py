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

_seen: dict[tuple[int, int], float] = {}
"""Seconds that each thread of a process waited, as last seen. Those of one that has ended still
count: else its end would add them to the time of everybody who measures just then."""


def own_time(*pids: int) -> float:
    """Return a clock's time in seconds, without waits of this process and these, with children."""
    for pid in {*_family(os.getpid()), *pids}:
        _look_at(pid)
    return time.monotonic() - sum(_seen.values())


def _family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(FileNotFoundError, ProcessLookupError):
        for child in children_of(pid):
            yield from _family(child)


def _look_at(pid: int) -> None:
    """Note how long the threads of a process waited for a processor, of all those it has now."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                waited = int((task / "schedstat").read_text().split()[1]) / 1e9
                thread = pid, int(task.name)
                if waited < _seen.get(thread, 0.0):  # its number was given to another
                    _seen[0, len(_seen)] = _seen[thread]
                _seen[thread] = waited
