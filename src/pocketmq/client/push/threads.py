"""Threads that call plain handlers: a bounded pool in which slow calls do not hold up others.

Threads take jobs from a common queue, and units of a slice at its front, and report together: the
loop is woken once for many. As long as calls are quick, one thread does them all, for two threads
of one interpreter would only alternate; when calls turn out slow, or one hangs, others are woken.
Independent of messages.

Which thread may touch what: `pending`, `done` and `idle` are deques, whose `append`, `popleft` and
`pop` are atomic; from `pending` threads take under `taking`, since a slice stays there for others;
`workers` is only added to on the loop and discarded from by the worker itself; `told`, `quick` and
`stopping` are single attributes, where an old value costs a wake-up, no job.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from pocketmq.client.clock import Clock, stopwatch
from pocketmq.client.push.jobs import (
    QUICK,
    Duty,
    Finished,
    Job,
    JobPart,
    SharedJob,
    Worker,
    waiting,
)

logger = logging.getLogger("pocketmq.client")

MOSTLY = 0.75
"""The share of quick jobs below which all threads are given work at once. A share and not a mean:
a quick job that had to wait for another thread looks slow, but it is one of many."""
REPORT_AFTER = 1_000_000
"""Nanoseconds after which a busy thread reports what is done."""
GUARD_AFTER = 0.002
"""Seconds in which quick jobs must get on, or more threads are woken."""
_IDLE_THREADS_END = 1.0


class Threads:
    """A pool of threads of one event loop, from which all but the threads' own work is done."""

    def __init__(self, name: str, limit: int, clock: Clock, finished: Finished) -> None:
        self._name = name
        self._limit = limit
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self._guarded: tuple[Duty | None, int] = (None, 0)
        self._guard: asyncio.TimerHandle | None = None
        self._gone: asyncio.Future[None] | None = None
        self._closed = False
        # Shared with the threads; every step on them is one of the interpreter's.
        self.tick = stopwatch(clock)
        self.taking = threading.Lock()
        self.pending: deque[Duty] = deque()
        self.done: deque[Job | JobPart] = deque()
        self.idle: deque[_Thread] = deque()
        self.workers: set[_Thread] = set()
        self.stopping = False
        self.told = False
        self.quick = 1.0
        """The share of quick jobs lately."""

    def give(self, jobs: Iterable[Duty]) -> None:
        """Do jobs; several threads take them in their order."""
        self.pending.extend(jobs)
        if self.quick < MOSTLY:
            self._wake(self._waiting())
        elif len(self.idle) == len(self.workers):
            self._wake(1)
        if self._guard is None:
            self._watch()

    def under_way(self) -> Iterator[tuple[object, int]]:
        """Return the jobs in flight, and for how many nanoseconds."""
        now = self.tick()
        for thread in list(self.workers):
            if (found := thread.worker.under_way(now)) is not None:
                yield found

    def halt(self) -> None:
        """Start no more jobs."""
        self.stopping = True
        for job in list(self.pending):
            if isinstance(job, SharedJob):
                job.close()
        self.pending.clear()
        if self._guard is not None:
            self._guard.cancel()

    async def stop(self, wait: float) -> int:
        """Start no more jobs; wait for those in flight; return how many took longer."""
        self.halt()
        if self.workers:
            self._gone = self._loop.create_future()
            busy = any(thread.worker.job is not None for thread in list(self.workers))
            self._wake(self._limit)
            await asyncio.wait({self._gone}, timeout=wait if busy else _IDLE_THREADS_END)
        self.drain()
        self._closed = True
        return len(self.workers)

    # Called on the loop

    def drain(self) -> None:
        """Report what the threads have done."""
        self.told = False  # first: what is done from now on is reported again
        done = self.done
        if done and not self._closed:
            self._finished([done.popleft() for _ in range(len(done))])

    def all_gone(self) -> None:
        """Note that the last thread has ended."""
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def _wake(self, count: int) -> None:
        for _ in range(count):
            try:
                self.idle.pop().gate.release()
            except IndexError:
                if self.stopping or len(self.workers) >= self._limit:
                    return
                if not self._add_worker():
                    return

    def _add_worker(self) -> bool:
        worker = _Thread(self, f"{self._name}-{len(self.workers) + 1}")
        self.workers.add(worker)
        try:
            worker.start()
        except RuntimeError as error:  # no more threads allowed; the guard tries again
            self.workers.discard(worker)
            count = len(self.workers)
            logger.error(  # noqa: TRY400 - where is clear
                'starting a thread failed: pool=%s threads=%d error="%s"; retrying',
                self._name,
                count,
                error,
            )
            return False
        return True

    def _waiting(self) -> int:
        return waiting(list(self.pending))

    def _front(self) -> tuple[Duty | None, int]:
        """Return the first job, and how much of it is not begun."""
        try:
            job = self.pending[0]
        except IndexError:  # a thread was quicker
            return None, 0
        return job, job.left if isinstance(job, SharedJob) else 1

    def _watch(self) -> None:
        self._guarded = self._front()
        self._guard = None
        if self._guarded[1] or self.done:
            self._guard = self._loop.call_later(GUARD_AFTER, self._look_after)

    def _look_after(self) -> None:
        """Wake more threads if the first job still waits; a slow call may be in its way.

        What was done before that call is reported here: its thread cannot.
        """
        job, left = self._front()
        if job is self._guarded[0] and left == self._guarded[1]:
            self._wake(self._waiting())
        self.drain()
        self._watch()

    # Called by threads

    def note(self, part: JobPart) -> None:
        """Settle a part with the next report."""
        self.done.append(part)

    def take(self) -> Duty | None:
        """Take the next job; a slice stays for others as long as it has more than one unit."""
        pending = self.pending
        with self.taking:
            while pending:
                try:
                    job = pending[0]
                    left = job.left if isinstance(job, SharedJob) else 1
                    if left < 2:
                        pending.popleft()
                except IndexError:  # the loop has cleared it
                    break
                if left:
                    return job
        return None

    def tell(self, callback: Callable[[], None]) -> None:
        """Call something on the loop, if there still is one."""
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            logger.debug("handler call outlived its event loop: pool=%s", self._name)


class _Thread(threading.Thread):
    """One thread. A daemon: a handler that never returns must not keep the program from ending."""

    def __init__(self, pool: Threads, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.gate = threading.Lock()
        self.gate.acquire()
        self.worker = Worker(pool)
        self._pool = pool

    def run(self) -> None:
        """Do jobs until the pool stops."""
        pool = self._pool
        while not pool.stopping:
            self._do_all()
            pool.idle.append(self)
            if pool.pending or pool.stopping:  # came in between: this worker was not woken for it
                try:
                    pool.idle.remove(self)
                except ValueError:
                    self.gate.acquire()
                continue
            self.gate.acquire()
        pool.workers.discard(self)
        if not pool.workers:
            pool.tell(pool.all_gone)

    def _do_all(self) -> None:
        worker, tick = self.worker, self._pool.tick
        reported = tick()
        while (job := self._pool.take()) is not None:
            worker.since = tick()
            worker.job = job
            if isinstance(job, SharedJob):
                part = job.part()
                while part.make(worker, reported + REPORT_AFTER):
                    self._report()
                    reported = tick()
            else:
                self._do(job, worker)
            worker.job = None
            if tick() - reported > REPORT_AFTER:
                self._report()
                reported = tick()
        self._report()

    def _do(self, job: Job, worker: Worker) -> None:
        job.make()
        worker.job = None
        job.took = took = worker.tick() - worker.since
        self._pool.done.append(job)
        worker.calls += 1
        if took < QUICK:
            worker.quick += 1

    def _report(self) -> None:
        pool, worker = self._pool, self.worker
        if worker.calls:
            pool.quick = 0.75 * pool.quick + 0.25 * worker.quick / worker.calls
            worker.calls = worker.quick = 0
        if pool.done and not pool.told:
            pool.told = True
            pool.tell(pool.drain)
