"""Loggers of PySpark that would change how pytest writes the log of every later test.

PySpark logs errors of queries by loggers of its own class, which do not propagate. pytest adds its
handlers to such loggers, and theirs make each handler write JSON from then on. So they are dropped
before each phase of a test; PySpark makes new ones when it needs them.
"""

import logging
from collections.abc import Generator

import pytest

NAMES = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def drop() -> None:
    """Drop the loggers that PySpark has made so far."""
    for name in NAMES:
        logging.Logger.manager.loggerDict.pop(name, None)


class QueryLoggers:
    """Drops them before pytest looks for loggers."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        """Drop what fixtures of others have left."""
        drop()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Drop what the test's own fixtures have left."""
        drop()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Drop what the test has left."""
        drop()
        return (yield)
