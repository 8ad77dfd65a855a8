"""Tasks that call coroutine handlers, on the loop itself: a bounded number at the same time.

A task takes job after job. A job that never really waits costs no switch; as soon as one does, the
next task continues with the rest. So `asyncio.current_task()` and everything built on it (timeouts,
task groups) work as usual in a handler. Uses no thread, so a virtual-time loop can run it.
Independent of messages.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator

from pocketmq.client.clock import Clock, stopwatch
from pocketmq.client.push.handlers import CANCELLED
from pocketmq.client.push.threads import Finished, Job

TURN = 3_000_000
"""Nanoseconds after which a task yields to the event loop."""
CANCEL_WAIT = 1.0
"""Seconds for a cancelled handler to clean up; one that takes longer is left alone."""


class _AtWork:
    """The job of a task, and when it began."""

    __slots__ = ("job", "since")

    def __init__(self) -> None:
        self.job: Job | None = None
        self.since = 0


class Runners:
    """The handler tasks of one consumer. Belongs to one event loop."""

    def __init__(self, name: str, limit: int, clock: Clock, finished: Finished) -> None:
        self._name = name
        self._limit = limit
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self._tick = stopwatch(clock)
        self._pending: deque[Job] = deque()
        self._done: list[Job] = []
        self._tasks: dict[asyncio.Task[None], _AtWork] = {}
        self._spare = False
        """Whether a task has been made that has not begun yet."""
        self._stopping = False

    def give(self, jobs: Iterable[Job]) -> None:
        """Do jobs, in their order as long as none waits."""
        self._pending.extend(jobs)
        self._make_spare()

    def under_way(self) -> Iterator[tuple[Job, int]]:
        """Return the jobs in flight, and for how many nanoseconds."""
        now = self._tick()
        for at_work in self._tasks.values():
            if at_work.job is not None:
                yield at_work.job, now - at_work.since

    def tasks(self) -> tuple[asyncio.Task[None], ...]:
        """Return the tasks that have a job or look for one."""
        return tuple(self._tasks)

    def halt(self) -> None:
        """Start no more jobs."""
        self._stopping = True
        self._pending.clear()

    async def stop(self, wait: float) -> int:
        """Start no more jobs; wait for those in flight, then cancel them; return their number.

        Every wait has an end, whatever a handler makes of being cancelled.
        """
        self.halt()
        late: set[asyncio.Task[None]] = set()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=wait)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=CANCEL_WAIT)
        self._report()
        return len(late)

    def _make_spare(self) -> None:
        if self._pending and not self._spare and len(self._tasks) < self._limit:
            self._spare = True
            at_work = _AtWork()
            task = self._loop.create_task(self._run(at_work), name=self._name)
            self._tasks[task] = at_work
            task.add_done_callback(self._ended)

    async def _run(self, at_work: _AtWork) -> None:
        self._spare = False
        task = asyncio.current_task()
        assert task is not None
        pending, tick = self._pending, self._tick
        now = turn = tick()
        while pending:
            job = pending.popleft()
            if pending and not self._spare:
                self._make_spare()
            at_work.job, at_work.since = job, now
            try:
                job.failure = await job.make_async()
            except asyncio.CancelledError:
                if self._stopping:
                    raise
                job.failure = CANCELLED
                if task.cancelling():  # this task was cancelled, not only what the job waited for
                    self._add(job)
                    raise
            began, now = now, tick()
            job.took = now - began
            if self._done:
                self._done.append(job)
            else:
                self._add(job)
            at_work.job = None
            if now - turn > TURN:
                await asyncio.sleep(0)
                now = turn = tick()

    def _add(self, job: Job) -> None:
        """Record a finished job; it is reported when no task can continue at once."""
        if not self._done:
            self._loop.call_soon(self._report)
        self._done.append(job)

    def _report(self) -> None:
        done, self._done = self._done, []
        if done:
            self._finished(done)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._make_spare()
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error  # a mistake of ours: the loop's exception handler shows it
