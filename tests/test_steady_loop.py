"""The clock of a steady loop: a thread that gets no processor loses no time, and all others do."""

import asyncio
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import steady_loop
from tests.steady_loop import SteadyLoop

counts = pytest.mark.skipif(
    not Path("/proc/thread-self/schedstat").exists(), reason="the kernel does not count it"
)


@contextmanager
def crowded(others: int) -> Iterator[None]:
    """Share one processor with processes that never rest."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})  # that of what it starts, too
    busy = [
        subprocess.Popen(
            [sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"], stdout=-1
        )
        for _ in range(others)
    ]
    try:
        for each in busy:
            assert each.stdout is not None
            each.stdout.readline()
        yield
    finally:
        for each in busy:
            each.kill()
            each.communicate()
        os.sched_setaffinity(0, before)


def run(story: "asyncio.Future[float] | object") -> float:
    with asyncio.Runner(loop_factory=SteadyLoop) as runner:
        return float(runner.run(story))  # type: ignore[arg-type]


@counts
def test_work_takes_no_longer_because_others_use_the_processor() -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        wall, began, worked = time.monotonic(), loop.time(), time.thread_time()
        while time.thread_time() - worked < 0.4:
            pass
        await asyncio.sleep(0)  # the loop looks at its sockets, and sees what the thread missed
        await asyncio.sleep(0)
        assert time.monotonic() - wall > 0.8
        return loop.time() - began

    with crowded(3):
        assert 0.35 < run(story()) < 0.7


def test_what_has_come_is_read_before_a_timer_that_the_thread_was_late_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when the answer to a request lies there, and the process wakes after the deadline."""
    select = selectors.DefaultSelector.select
    late = False

    async def story() -> float:
        nonlocal late
        here, there = socket.socketpair()
        with here, there:
            reader, _ = await asyncio.open_connection(sock=here)
            there.send(b"x")
            late = True
            async with asyncio.timeout(0.1):
                await reader.readexactly(1)
            _.close()
            return 1.0

    def select_late(self: selectors.DefaultSelector, timeout: float | None = None) -> object:
        nonlocal late
        if late:
            late = False
            time.sleep(0.5)  # longer than it was to wait for sockets
        return select(self, timeout)

    monkeypatch.setattr(selectors.DefaultSelector, "select", select_late)
    assert run(story()) == 1.0


def test_what_the_thread_itself_waits_for_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady_loop, "waited", lambda: 0.0)

    async def story() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        time.sleep(0.2)  # noqa: ASYNC251 - as a handler that holds the loop up
        await asyncio.sleep(0.1)
        return loop.time() - began

    assert run(story()) >= 0.3
