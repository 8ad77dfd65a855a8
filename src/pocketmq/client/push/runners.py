"""Tasks that call coroutine handlers, on the loop itself: a bounded number at the same time.

A task takes job after job. A job that never really waits costs no switch; as soon as one does, the
next task continues with the rest, also of the same slice. So `asyncio.current_task()` and
everything built on it (timeouts, task groups) work as usual in a handler. Uses no thread, so a
virtual-time loop can run it. Independent of messages.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator

from pocketmq.client.clock import Clock, stopwatch
from pocketmq.client.push.handlers import CANCELLED
from pocketmq.client.push.jobs import Duty, Finished, Job, JobPart, SharedJob, Worker

TURN = 3_000_000
"""Nanoseconds after which a task yields to the event loop."""
CANCEL_WAIT = 1.0
"""Seconds for a cancelled handler to clean up; one that takes longer is left alone."""


class Runners:
    """The handler tasks of one consumer. Belongs to one event loop."""

    def __init__(self, name: str, limit: int, clock: Clock, finished: Finished) -> None:
        self._name = name
        self._limit = limit
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self.tick = stopwatch(clock)
        self.stopping = False
        self._pending: deque[Duty] = deque()
        self._done: list[Job | JobPart] = []
        self._tasks: dict[asyncio.Task[None], Worker] = {}
        self._spare: asyncio.Task[None] | None = None
        """A task that has been made and has not begun yet."""
        self._wanted = False
        """Whether one is made in the next iteration, if it is needed then."""
        self._resting = 0
        """Tasks that let the loop have its turn and then continue."""

    def give(self, jobs: Iterable[Duty], *, later: bool = False) -> None:
        """Do jobs, in their order as long as none waits; with `later` an iteration later."""
        self._pending.extend(jobs)
        if later:
            self._want_spare()
        else:
            self._make_spare()

    def under_way(self) -> Iterator[tuple[object, int]]:
        """Return the jobs in flight, and for how many nanoseconds."""
        now = self.tick()
        for worker in self._tasks.values():
            if (found := worker.under_way(now)) is not None:
                yield found

    def tasks(self) -> tuple[asyncio.Task[None], ...]:
        """Return the tasks that have a job or look for one."""
        return tuple(self._tasks)

    def halt(self) -> None:
        """Start no more jobs."""
        self.stopping = True
        for job in self._pending:
            if isinstance(job, SharedJob):
                job.close()
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

    def note(self, part: JobPart) -> None:
        """Settle a part when no task can continue at once."""
        self._add(part)

    def _want_spare(self) -> None:
        """Make a spare task in the next iteration, if jobs are left by then."""
        if not self._wanted and self._spare is None and len(self._tasks) < self._limit:
            self._wanted = True
            self._loop.call_soon(self._make_wanted)

    def _make_wanted(self) -> None:
        self._wanted = False
        if not self._resting:  # one that waits for nothing will continue
            self._make_spare()

    def _make_spare(self) -> None:
        if self._pending and self._spare is None and len(self._tasks) < self._limit:
            worker = Worker(self)
            task = self._spare = self._loop.create_task(self._run(worker), name=self._name)
            self._tasks[task] = worker
            task.add_done_callback(self._ended)

    def _next(self) -> Duty | None:
        """Take the next job; a slice stays for others as long as it has more than one unit."""
        pending = self._pending
        while pending:
            job = pending[0]
            left = job.left if isinstance(job, SharedJob) else 1
            if left < 2:
                pending.popleft()
            if left:
                return job
        return None

    async def _run(self, worker: Worker) -> None:
        self._spare = None
        if self._resting:
            return  # one that waits for nothing will continue, and make another spare one
        turn = self.tick()
        while (job := self._next()) is not None:
            if len(self._tasks) > 1:
                self._make_spare()  # others wait already, and this one may, too
            elif self._pending:
                self._want_spare()  # mostly nothing is left by then, and it is never made
            worker.job, worker.since = job, self.tick()
            if isinstance(job, SharedJob):
                part = job.part()
                while await part.make_async(worker, turn + TURN):
                    turn = await self._rest()
            else:
                await self._do(job, worker.since)
            worker.job = None
            if self.tick() - turn > TURN:
                turn = await self._rest()

    async def _do(self, job: Job, began: int) -> None:
        try:
            job.failure = await job.make_async()
        except asyncio.CancelledError:
            if self.stopping:
                raise
            job.failure = CANCELLED
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # not only what the job waited for
                self._add(job)
                raise
        job.took = self.tick() - began
        self._add(job)

    async def _rest(self) -> int:
        """Let the loop have its turn; return when it is over."""
        self._resting += 1
        try:
            await asyncio.sleep(0)
        finally:
            self._resting -= 1
        self._make_spare()
        return self.tick()

    def _add(self, job: Job | JobPart) -> None:
        """Record what is finished; it is reported when no task can continue at once."""
        if not self._done:
            self._loop.call_soon(self._report)
        self._done.append(job)

    def _report(self) -> None:
        done, self._done = self._done, []
        if done:
            self._finished(done)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if self._spare is task:  # it was cancelled before it began
            self._spare = None
        if not self._resting:
            self._make_spare()
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error  # a mistake of ours: the loop's exception handler shows it
