"""Settings for all tests: a slow or busy machine must not fail what is right."""

import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from pocketmq import native
from tests.early import early_works, outcome, work_of
from tests.loops import pytest_generate_tests, pytest_pyfunc_call, set_aside
from tests.query_loggers import QueryLoggers
from tests.sound_stores import stores_are_sound
from tests.watchdog import Overseer, Watchdog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Wall-clock limits for one example say more about the machine than about the code. Tests that
# promise speed measure processor time themselves, and every test has pytest's timeout.
settings.register_profile(
    "steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("steady")

LONGEST = [
    {"pipelines", "spark"},  # one group, on one worker: nothing may come before it
    {"dashboard", "test_group_of_processes.py", "test_soak.py", "test_eight_hours.py"}
    | {"test_schedules.py", "test_sticky_schedules.py"},
]
"""Files and folders that a run begins with: in a parallel one they would be alone at the end."""
RARELY = 50_000, 20, 20
"""Thresholds of the garbage collector; with its own it costs much and finds what could wait."""

__all__ = [  # fixtures of all tests, and hooks by which tests may be coroutines
    "early_works",
    "outcome",
    "pytest_generate_tests",
    "pytest_pyfunc_call",
    "stores_are_sound",
]


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C mean the same in workers and in a shell's background jobs; name markers.

    Both ignore SIGINT, other callers may block it, and processes that tests start inherit that.
    """
    if hasattr(config, "workerinput") or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    text = "damaged_store: the test damages a store on purpose; it is not checked afterwards"
    config.addinivalue_line("markers", text)
    config.pluginmanager.register(Watchdog(config))
    if Overseer.wanted(config):
        config.pluginmanager.register(Overseer())
    config.pluginmanager.register(QueryLoggers())


def pytest_report_header() -> str:
    """Return which path is tested."""
    return f"pocketmq: {native.description}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest first, last those whose work is begun early; give Spark more time.

    A call to Spark that a timeout interrupts leaves the session that all share unusable.
    """
    items.sort(key=lambda item: (work_of(item) is not None, _turn(item)))
    for item in items:
        uses_spark = "spark" in getattr(item, "fixturenames", ())
        if uses_spark and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(300))


def _turn(item: pytest.Item) -> int:
    turns = (n for n, names in enumerate(LONGEST) if not names.isdisjoint(item.path.parts))
    return next(turns, len(LONGEST))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Take what is collected out of the garbage collector's sight: it stays to the end anyway.

    Each coroutine test ends with a full collection. It would look at the modules, items and
    fixtures of all tests each time, 0.25 s of processor time, and not just at what the test left.
    Meanwhile it would look in vain, too.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.set_threshold(*RARELY)
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let others have the processors while tests run that only compute; see `set_aside`."""
    set_aside(item)
    workers: int = getattr(item.config, "workerinput", {}).get("workercount", 1)
    if workers > 2:
        from tests.grouping import group_of, is_patient

        if is_patient(group_of(item.nodeid)):
            os.setpriority(os.PRIO_PROCESS, 0, 19)


@pytest.fixture(autouse=True)
def levels_are_put_back() -> Iterator[None]:
    """Fail the test that leaves our loggers quieter or louder, not one of those that come later."""
    before = _levels()
    yield
    changed = {name: level for name, level in _levels().items() if level != before.get(name, 0)}
    assert not changed, f"levels left behind: {changed}"


def _levels() -> dict[str, int]:
    names = [name for name in logging.root.manager.loggerDict if name.startswith("pocketmq")]
    return {name: logging.getLogger(name).level for name in names}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep tests together, in a parallel run, that share a cluster or a Spark session."""
    from tests.grouping import Together

    if config.getoption("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False  # xdist's own order has the largest groups first
    return Together(config, log)


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Yield the one session that all tests share: two cores, compiled once and not again."""
    pytest.importorskip("pyspark")
    from pocketmq.spark import spark_session
    from pocketmq.spark.engine import stop_session
    from tests.spark.archive import quick_java

    session = spark_session(
        "pocketmq tests",
        master="local[2,2]",  # a task that fails is tried twice
        config={
            "spark.driver.extraJavaOptions": f"{quick_java()} -Xss4m",
            "spark.driver.memory": "1g",
            "spark.sql.shuffle.partitions": "2",
        },
    )
    yield session
    stop_session(session)
