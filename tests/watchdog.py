"""A test that outlives its timeout ends its process, which then prints where each thread is.

A timeout raises an error in the main thread, once. What the test leaves on its way out may wait for
ever all the same: a pool for threads that are stuck, a fixture for a process. A run would not end.
Neither would it if a worker hung while it imports tests, or after the last: that ends the run.
"""

import faulthandler
import os
from collections.abc import Generator

import pytest

OVERTIME = 60.0
"""Seconds that a test has to end after its timeout."""
SILENCE = 1200.0
"""Seconds in which some worker begins a test; twice the longest timeout of usual tests."""
LONGER = {"POCKETMQ_MODEL", "POCKETMQ_RUST"}
"""Variables that ask for tests with longer timeouts."""


class Watchdog:
    """Watches one test after the other, by a timer that needs neither Python nor the main thread."""

    def __init__(self, config: pytest.Config, overtime: float = OVERTIME) -> None:
        self._overtime = overtime
        self._ordinary = float(config.getini("timeout") or 0)
        self._off = config.getoption("timeout") == 0  # somebody looks into a test
        self._errors = os.dup(2)  # that of a test is captured

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Watch a test with its fixtures."""
        self._start(item)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """Watch the fixtures of a test that has failed: its timeout and our timer are off then."""
        if isinstance(node, pytest.Item):
            self._start(node)

    def _start(self, item: pytest.Item) -> None:
        if not self._off:
            mark = item.get_closest_marker("timeout")
            timeout = self._ordinary if mark is None else float(mark.args[0])
            seconds = timeout + self._overtime
            faulthandler.dump_traceback_later(seconds, exit=True, file=self._errors)


class Overseer:
    """Ends a parallel run in which no worker begins a test for long; belongs to its main process."""

    def __init__(self, silence: float = SILENCE) -> None:
        self._silence = silence
        self._errors = os.dup(2)
        self.pytest_runtest_logstart()

    @staticmethod
    def wanted(config: pytest.Config) -> bool:
        """Return whether this is such a process, and all tests have the usual timeouts."""
        parallel = bool(config.getoption("numprocesses", None))
        usual = config.getoption("timeout") != 0 and LONGER.isdisjoint(os.environ)
        return parallel and usual and not hasattr(config, "workerinput")

    def pytest_runtest_logstart(self) -> None:
        """Start counting anew."""
        faulthandler.dump_traceback_later(self._silence, exit=True, file=self._errors)
