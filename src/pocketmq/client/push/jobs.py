"""What threads and tasks are given to do: a job for one of them, or a slice that several share.

Both are made and settled on the event loop. A worker takes unit after unit of a slice, and another
may join in at any time, so a unit that takes long holds up no other. What is done is collected in
parts, one for each worker, and reported to the loop for many units at once. Independent of
messages.
"""

from collections.abc import Awaitable, Callable, Sequence
from operator import length_hint
from typing import Any, Protocol

from pocketmq.client.push.handlers import Failure

QUICK = 50_000
"""Nanoseconds within which a quick job, or unit of a slice, is done."""


class Job(Protocol):
    """Something to do in a thread, or on the loop."""

    took: int
    """Nanoseconds it took."""
    failure: Failure | None
    """What went wrong; set by the thread or task that does it."""

    def make(self) -> None:
        """Do it in a thread; raises nothing."""

    def make_async(self) -> Awaitable[Failure | None]:
        """Do it on the loop; raises nothing but `CancelledError`."""


class JobPart:
    """What one thread or task does of a slice, and what of that is not settled yet."""

    __slots__ = ("noted",)

    def __init__(self) -> None:
        self.noted = False
        """Whether it is among those to be settled. The worker sets it after it added something, the
        loop clears it before it looks: so nothing is left lying."""

    def make(self, worker: "Worker", until: int) -> bool:
        """Do units in a thread until a tick; False if none is left. Raises nothing."""
        raise NotImplementedError

    async def make_async(self, worker: "Worker", until: int) -> bool:
        """Do units on the loop until a tick; False if none is left.

        Raises nothing but `CancelledError`, when it is the task that was cancelled.
        """
        raise NotImplementedError


class SharedJob:
    """Units of work that any number of workers take one by one."""

    __slots__ = ("units",)

    def __init__(self, units: Sequence[Any]) -> None:
        self.units = iter(units)
        """Those not begun; a step of an iterator over a list or tuple is atomic."""

    @property
    def left(self) -> int:
        """The number of units that are not begun."""
        return length_hint(self.units)

    def close(self) -> None:
        """Let no more units begin."""
        for _ in self.units:
            pass

    def part(self) -> JobPart:
        """Return the part of another worker."""
        raise NotImplementedError

    def begun(self, unit: Any) -> object:
        """Return a description of a unit in flight."""
        raise NotImplementedError


Duty = Job | SharedJob
Finished = Callable[[Sequence[Job | JobPart]], None]


class Worker:
    """What a thread or task is at, readable from the loop at any time."""

    __slots__ = ("calls", "job", "note", "pool", "quick", "since", "tick", "unit")

    def __init__(self, pool: "Pool") -> None:
        self.pool = pool
        self.tick = pool.tick
        self.note = pool.note
        self.job: Duty | None = None
        self.unit: Any = None
        """The unit of a slice. Set after `since`: the time of another one must not count for it."""
        self.since = 0
        self.calls = 0
        """Units and jobs done since the last report, and those of them that were quick."""
        self.quick = 0

    def under_way(self, now: int) -> tuple[object, int] | None:
        """Return the job or unit in flight, and for how many nanoseconds."""
        job, unit = self.job, self.unit
        if isinstance(job, SharedJob):
            return None if unit is None else (job.begun(unit), now - self.since)
        return None if job is None else (job, now - self.since)


class Pool(Protocol):
    """What a worker needs of the pool it belongs to."""

    tick: Callable[[], int]
    stopping: bool

    def note(self, part: JobPart) -> None:
        """Settle a part soon; called for the first unit since it was settled last."""


def waiting(work: Sequence[Duty]) -> int:
    """Return the number of jobs and units that are not begun."""
    return sum(one.left if isinstance(one, SharedJob) else 1 for one in work)
