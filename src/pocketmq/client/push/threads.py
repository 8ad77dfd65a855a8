"""Threads that call plain handlers: a bounded pool in which slow calls do not hold up others.

Threads take one job at a time from a common queue and report together: the loop is woken once for
many. As long as calls are quick, one thread does them all, for two threads of one interpreter would
only alternate; when calls turn out slow, or one hangs, others are woken. Independent of
messages.

Which thread may touch what: `pending`, `done` and `idle` are deques, whose `append`, `popleft` and
`pop` are atomic; `workers` is only added to on the loop and discarded from by the worker itself;
`told`, `quick` and `stopping` are single attributes, where an old value costs a wake-up, no job.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Protocol

from pocketmq.client.clock import Clock, stopwatch
from pocketmq.client.push.handlers import Failure

logger = logging.getLogger("pocketmq.client")

QUICK = 50_000
"""Nanoseconds within which a quick job is done."""
MOSTLY = 0.75
"""The share of quick jobs below which all threads are given work at once. A share and not a mean:
a quick job that had to wait for another thread looks slow, but it is one of many."""
REPORT_AFTER = 1_000_000
"""Nanoseconds after which a busy thread reports what is done."""
GUARD_AFTER = 0.002
"""Seconds in which quick jobs must get on, or more threads are woken."""
_IDLE_THREADS_END = 1.0


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


Finished = Callable[[Sequence[Job]], None]


class Threads:
    """A pool of threads of one event loop, from which all but the threads' own work is done."""

    def __init__(self, name: str, limit: int, clock: Clock, finished: Finished) -> None:
        self._name = name
        self._limit = limit
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self._guarded: Job | None = None
        self._guard: asyncio.TimerHandle | None = None
        self._gone: asyncio.Future[None] | None = None
        self._closed = False
        # Shared with the threads; every step on them is one of the interpreter's.
        self.tick = stopwatch(clock)
        self.pending: deque[Job] = deque()
        self.done: deque[Job] = deque()
        self.idle: deque[_Worker] = deque()
        self.workers: set[_Worker] = set()
        self.stopping = False
        self.told = False
        self.quick = 1.0
        """The share of quick jobs lately."""

    def give(self, jobs: Iterable[Job]) -> None:
        """Do jobs; several threads take them in their order."""
        pending = self.pending
        pending.extend(jobs)
        if self.quick < MOSTLY:
            self._wake(len(pending))
            return
        if len(self.idle) == len(self.workers):
            self._wake(1)
        if self._guard is None:
            self._watch()

    def under_way(self) -> Iterator[tuple[Job, int]]:
        """Return the jobs in flight, and for how many nanoseconds."""
        now = self.tick()
        for worker in list(self.workers):
            job = worker.job
            if job is not None:
                yield job, now - worker.since

    def halt(self) -> None:
        """Start no more jobs."""
        self.stopping = True
        self.pending.clear()
        if self._guard is not None:
            self._guard.cancel()

    async def stop(self, wait: float) -> int:
        """Start no more jobs; wait for those in flight; return how many took longer."""
        self.halt()
        if self.workers:
            self._gone = self._loop.create_future()
            busy = any(True for _ in self.under_way())
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
        worker = _Worker(self, f"{self._name}-{len(self.workers) + 1}")
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

    def _watch(self) -> None:
        try:
            self._guarded = self.pending[0]
        except IndexError:  # a thread was quicker
            self._guard = self._guarded = None
            return
        self._guard = self._loop.call_later(GUARD_AFTER, self._look_after)

    def _look_after(self) -> None:
        """Wake more threads if the first job still waits; a slow call may be in its way."""
        self._guard = None
        try:
            first = self.pending[0]
        except IndexError:
            return
        if first is self._guarded:
            self._wake(len(self.pending))
        self._watch()

    # Called by threads

    def tell(self, callback: Callable[[], None]) -> None:
        """Call something on the loop, if there still is one."""
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            logger.debug("handler call outlived its event loop: pool=%s", self._name)


class _Worker(threading.Thread):
    """One thread. A daemon: a handler that never returns must not keep the program from ending."""

    def __init__(self, pool: Threads, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.gate = threading.Lock()
        self.gate.acquire()
        self.job: Job | None = None
        self.since = 0
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
        pool = self._pool
        take, tick, done = pool.pending.popleft, pool.tick, pool.done
        now = reported = tick()
        count = quick = 0
        while True:
            try:
                self.job = job = take()
            except IndexError:
                break
            self.since = now
            job.make()
            self.job = None
            began, now = now, tick()
            job.took = took = now - began
            done.append(job)
            count += 1
            if took < QUICK:
                quick += 1
            if now - reported > REPORT_AFTER:
                self._report(quick / count)
                reported, count, quick = now, 0, 0
        if count:
            self._report(quick / count)

    def _report(self, quick: float) -> None:
        pool = self._pool
        pool.quick = 0.75 * pool.quick + 0.25 * quick
        if not pool.told:
            pool.told = True
            pool.tell(pool.drain)
