"""The pool that calls plain handlers: few threads for quick jobs, all for slow ones, none lost."""

import asyncio
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from pocketmq.client.clock import SystemClock
from pocketmq.client.push.handlers import Failure
from pocketmq.client.push.jobs import Job, JobPart
from pocketmq.client.push.runners import CANCEL_WAIT, Runners
from pocketmq.client.push.threads import Threads
from tests.loops import until


class Task:
    """A job that does what a test wants."""

    def __init__(self, do: Callable[[], object]) -> None:
        self.took = 0
        self.failure: Failure | None = None
        self._do = do

    def make(self) -> None:
        self._do()

    async def make_async(self) -> Failure | None:
        self._do()
        return None


class Done:
    """What was reported, and how often."""

    def __init__(self) -> None:
        self.jobs: list[Job | JobPart] = []
        self.reports = 0

    def __call__(self, jobs: Sequence[Job | JobPart]) -> None:
        self.jobs += jobs
        self.reports += 1


def pool(limit: int, done: Done) -> Threads:
    return Threads("test", limit, SystemClock(), done)


async def test_quick_jobs_take_one_thread_and_few_reports() -> None:
    """The loop is held up here, so that nobody can think the thread was stuck."""
    done, used = Done(), set[int]()
    threads = pool(20, done)
    for _ in range(20):
        threads.give([Task(lambda: used.add(threading.get_ident())) for _ in range(100)])
    while len(threads.done) < 2000:
        time.sleep(0.0001)  # noqa: ASYNC251 - holding the loop up is the point
    assert (len(used), len(threads.workers), done.reports) == (1, 1, 0)
    await until(lambda: len(done.jobs) == 2000, "all jobs to be reported")
    assert await threads.stop(5.0) == 0
    assert done.reports <= 2


async def test_slow_jobs_are_spread_over_all_threads() -> None:
    done, used = Done(), set[int]()
    together = threading.Barrier(8)

    def meet() -> None:
        used.add(threading.get_ident())
        together.wait(10)  # broken unless eight threads come

    threads = pool(8, done)
    threads.give([Task(meet) for _ in range(16)])
    await until(lambda: len(done.jobs) == 16, "all jobs")
    assert await threads.stop(5.0) == 0
    assert len(used) == 8


async def test_there_are_never_more_threads_than_allowed() -> None:
    done, lock, running, most = Done(), threading.Lock(), 0, 0

    def busy() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.001)
        with lock:
            running -= 1

    threads = pool(4, done)
    for _ in range(10):
        threads.give([Task(busy) for _ in range(10)])
        await asyncio.sleep(0.002)
    await until(lambda: len(done.jobs) == 100, "all jobs")
    assert await threads.stop(5.0) == 0
    assert 2 <= most <= 4


async def test_every_job_is_done_and_reported_once_whatever_its_length() -> None:
    done, chance = Done(), random.Random(7)
    threads = pool(5, done)
    given: list[Task] = []
    for _ in range(300):
        more = [
            Task(lambda: time.sleep(0.0005) if chance.random() < 0.02 else None)
            for _ in range(chance.randrange(1, 30))
        ]
        given += more
        threads.give(more)
        await asyncio.sleep(chance.choice([0, 0, 0, 0.0003]))
    await until(lambda: len(done.jobs) >= len(given), "all jobs")
    assert await threads.stop(5.0) == 0
    assert len(done.jobs) == len(given)
    assert set(map(id, done.jobs)) == set(map(id, given))


async def test_how_long_a_job_takes_is_known_during_and_after_it() -> None:
    done, release = Done(), threading.Event()
    threads = pool(2, done)
    job = Task(lambda: release.wait(10))
    threads.give([job])
    await until(lambda: any(ns > 20_000_000 for _, ns in threads.under_way()), "20 ms")
    assert [found for found, _ in threads.under_way()] == [job]
    release.set()
    await until(lambda: done.jobs == [job], "the end")
    assert job.took > 20_000_000
    assert list(threads.under_way()) == []
    await threads.stop(5.0)


async def test_a_job_that_outlives_the_pool_is_not_reported() -> None:
    done, release = Done(), threading.Event()
    threads = pool(2, done)
    threads.give([Task(lambda: release.wait(10))])
    await until(lambda: bool(list(threads.under_way())), "the job")
    assert await threads.stop(0.01) == 1
    release.set()
    await until(lambda: not threads.workers, "its end")
    await asyncio.sleep(0)
    assert done.jobs == []


def test_a_job_may_outlive_its_loop() -> None:
    done, release = Done(), threading.Event()
    kept: list[Threads] = []

    async def story() -> None:
        threads = pool(1, done)
        kept.append(threads)
        threads.give([Task(lambda: release.wait(10))])
        await until(lambda: bool(list(threads.under_way())), "the job")

    asyncio.run(story())
    (worker,) = kept[0].workers
    release.set()
    kept[0].stopping = True
    worker.gate.release()
    worker.join(10)
    assert (worker.is_alive(), done.jobs) == (False, [])


async def test_an_idle_pool_stops_at_once_and_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    done = Done()
    threads = pool(3, done)
    together = threading.Barrier(3)
    threads.give([Task(lambda: together.wait(10)) for _ in range(3)])
    await until(lambda: len(done.jobs) == 3, "three threads")
    assert await threads.stop(0.0) == 0
    await until(lambda: set(threading.enumerate()) <= before, "no thread more than before")


async def test_a_thread_that_cannot_be_had_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start, refusals = threading.Thread.start, iter(range(3))

    def scarce(thread: threading.Thread) -> None:
        if next(refusals, None) is not None:
            raise RuntimeError("can't start new thread")
        start(thread)

    done = Done()
    threads = pool(2, done)
    monkeypatch.setattr(threading.Thread, "start", scarce)
    threads.give([Task(int)])
    await until(lambda: len(done.jobs) == 1, "the job")
    assert await threads.stop(5.0) == 0
    refused = """pool=test threads=0 error="can't start new thread"; retrying"""
    assert caplog.text.count(refused) == 3


async def test_quick_coroutines_share_a_task_and_waiting_ones_do_not() -> None:
    done, tasks = Done(), set[object]()
    runners = Runners("test", 4, SystemClock(), done)
    runners.give([Task(lambda: tasks.add(asyncio.current_task())) for _ in range(100)])
    await until(lambda: len(done.jobs) == 100, "all jobs")
    assert len(tasks) == 1

    class Waits(Task):
        async def make_async(self) -> Failure | None:
            tasks.add(asyncio.current_task())
            await meeting.wait()
            return None

    meeting = asyncio.Barrier(4)
    tasks.clear()
    runners.give([Waits(int) for _ in range(8)])
    await until(lambda: len(done.jobs) == 108, "all jobs")
    assert len(tasks) == 4
    assert await runners.stop(1.0) == 0


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks begin later before Python 3.12")
async def test_tasks_may_begin_at_once() -> None:
    done = Done()
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    if sys.version_info >= (3, 12):
        loop.set_task_factory(asyncio.eager_task_factory)
    try:
        runners = Runners("test", 4, SystemClock(), done)
        runners.give([Task(int) for _ in range(8)])
        await until(lambda: len(done.jobs) == 8, "all jobs")
        assert await runners.stop(1.0) == 0
        assert not runners.tasks()
    finally:
        loop.set_task_factory(before)


async def test_a_coroutine_that_ignores_its_cancellation_does_not_hold_up_a_stop() -> None:
    done, ended = Done(), asyncio.Event()
    runners = Runners("test", 4, SystemClock(), done)

    class Stubborn(Task):
        async def make_async(self) -> Failure | None:
            while not ended.is_set():
                with suppress(asyncio.CancelledError):
                    await ended.wait()
            return None

    runners.give([Stubborn(int)])
    await until(lambda: any(True for _ in runners.under_way()), "it to begin")
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await runners.stop(0.0) == 1
    assert loop.time() - began >= CANCEL_WAIT, "it had its time to clean up"
    ended.set()
    await until(lambda: not runners.tasks(), "it to end")
