"""Coroutine tests: run on asyncio's loop, some also on uvloop where it is installed.

`tests/conftest.py` imports the two hooks. After each test no task, no open file and no complaint to
the loop may be left. Everything that touches the loop itself is in `net`, so those tests run on
both loops, and a smoke set of the layers above does; the rest would only repeat what they show.
"""

import asyncio
import gc
import importlib
import importlib.util
import inspect
import logging
import selectors
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

F = TypeVar("F", bound=Callable[..., object])

ROOT = Path(__file__).parents[1]

BOTH = ["asyncio", "uvloop"] if importlib.util.find_spec("uvloop") else ["asyncio"]
ALSO_ON_UVLOOP = {
    "tests/net",
    "tests/nameserver/test_server.py",
    "tests/client/producer/test_cluster.py",
    "tests/client/push/test_push.py",
    "tests/client/push/test_straight.py",
    "tests/client/test_rows.py",
    "tests/client/pull/test_polling.py",
    "tests/client/pop/test_consumer.py",
    "tests/proxy/test_front.py",
}
"""Folders and files whose tests run on both loops."""
_FILES = 40
_seen: set[Path] = set()
"""Files whose tests were set up."""


_FIRST = 0.001
"""Seconds by which what has come is before what is due, if a thread finds both when it wakes up."""


class _Waits(selectors.DefaultSelector):
    """Notes how long there was nothing to do; not how late it was called back from that."""

    total = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        began, worked = time.monotonic(), time.thread_time()
        found = super().select(timeout)
        took = time.monotonic() - began - (time.thread_time() - worked)
        if timeout is not None and took > timeout:
            took = max(0.0, timeout - (_FIRST if found else 0.0))
        self.total += took
        return found


class OwnTimeLoop(asyncio.SelectorEventLoop):
    """A loop whose clock stands still while others have the processor.

    Client and server of a test are mostly on one loop. If that gets no processor for some seconds,
    none of them was slow, and no request between them may time out. So time is what the loop's
    thread works, and what it waits for sockets and timers when it has nothing to do.
    """

    def __init__(self) -> None:
        self._waits = _Waits()
        self._thread = threading.get_ident()
        self._began = time.monotonic() - time.thread_time()
        self._now = time.monotonic()
        super().__init__(self._waits)

    def time(self) -> float:
        if threading.get_ident() == self._thread:
            self._now = self._began + self._waits.total + time.thread_time()
        return self._now


class LeapingLoop(OwnTimeLoop):
    """A loop with real sockets whose clock can be put forward, and stopped."""

    ahead = 0.0
    stopped_at: float | None = None

    def time(self) -> float:
        now = super().time() if self.stopped_at is None else self.stopped_at
        return now + self.ahead


def leaping(test: F) -> F:
    """Run a test on the loop that `leap` works on."""
    test.loops = ["leaping"]  # type: ignore[attr-defined]
    return test


async def leap(seconds: float) -> None:
    """Let this much time have passed, and everything happen that was due meanwhile."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, LeapingLoop)
    loop.ahead += seconds
    for _ in range(5):
        await asyncio.sleep(0)


@contextmanager
def stopped_clock() -> Iterator[None]:
    """Let no time pass but by leaps, however long the machine takes meanwhile.

    What is due a tenth of a second after a leap would else come before it on a busy machine.
    """
    loop = asyncio.get_running_loop()
    assert isinstance(loop, LeapingLoop)
    assert loop.stopped_at is None
    loop.stopped_at = loop.time() - loop.ahead
    try:
        yield
    finally:
        now = loop.time()
        loop.stopped_at = None
        loop.ahead += now - loop.time()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if inspect.iscoroutinefunction(metafunc.function):
        metafunc.fixturenames.append("loop_name")
        loops = getattr(metafunc.function, "loops", _loops_of(metafunc.definition.path))
        metafunc.parametrize("loop_name", loops)


def _loops_of(file: Path) -> list[str]:
    relative = file.relative_to(ROOT)
    places = {str(place) for place in (relative, *relative.parents)}
    return ["asyncio"] if ALSO_ON_UVLOOP.isdisjoint(places) else BOTH


def set_aside(item: pytest.Item) -> None:
    """Take what is there before a coroutine test, or a file, out of the garbage collector's sight.

    The collection at the end of the test then looks at what the test has made, not at all that
    tests before it have imported and shared, which costs more than most tests do; so do those that
    other tests ask for. To be called before fixtures are made. What became garbage meanwhile goes
    every `_FILES` files.
    """
    is_first = item.path not in _seen
    if is_first:
        _seen.add(item.path)
        if len(_seen) % _FILES == 0:
            gc.unfreeze()
    if is_first or inspect.iscoroutinefunction(getattr(item, "obj", None)):
        gc.collect()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    complaints: list[dict[str, Any]] = []
    factory = _factory(str(pyfuncitem.callspec.params["loop_name"]))
    with _clocks_may_differ(), asyncio.Runner(loop_factory=factory) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: complaints.append(context))
        runner.run(_alone(pyfuncitem.obj(**arguments)))
    assert complaints == []
    gc.collect()  # what was dropped while still open complains now
    return True


@contextmanager
def _clocks_may_differ() -> Iterator[None]:
    """Let brokers not log that the wall clock is ahead of the loop's, which may have stood still."""
    logger = logging.getLogger("pocketmq.broker")
    logger.addFilter(_says_something_else)
    try:
        yield
    finally:
        logger.removeFilter(_says_something_else)


def _says_something_else(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("system clock jumped forward")


async def _alone(story: Any) -> None:
    files = open_files()
    await story
    await until(lambda: len(asyncio.all_tasks()) == 1, "all tasks to end")
    await until(lambda: open_files() <= files, "all files to be closed")


def _factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    if name == "asyncio":
        return OwnTimeLoop
    if name == "leaping":
        return LeapingLoop
    factory: Callable[[], asyncio.AbstractEventLoop]
    factory = importlib.import_module(name).new_event_loop
    return factory


def open_files() -> int:
    """How many files and sockets this process has open; libuv keeps a spare one on /dev/null."""
    names = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one this loop itself reads from
            names.append(entry.readlink())
    return len([name for name in names if name != Path("/dev/null")])


async def until(condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Wait for a condition; fail if it does not come true in time."""
    loop = asyncio.get_running_loop()
    stopped = isinstance(loop, LeapingLoop) and loop.stopped_at is not None
    now = time.monotonic if stopped else loop.time
    deadline = now() + seconds
    while not condition():
        assert now() < deadline, f"waited {seconds} s in vain for {what}"
        await asyncio.sleep(0 if stopped else 0.001)
