"""Errors of ours as one line: Spark prints the traceback of its Python process with each.

Such an error says what is wrong and how to fix it; twenty lines of frames above it hide that. The
traceback is logged for those who want it. Other errors keep theirs.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from pocketmq.errors import MQError

logger = logging.getLogger("pocketmq.spark")

P = ParamSpec("P")
T = TypeVar("T")

HIDE = "SPARK_HIDE_TRACEBACK"
"""The variable by which Spark's Python processes are told to print the error alone."""


def in_brief(call: Callable[P, T]) -> Callable[P, T]:
    """Let errors of ours that leave a call be printed without a traceback."""

    @wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except MQError as error:
            _hide(error)
            raise

    return run


def brief_rows(rows: Iterator[T]) -> Iterator[T]:
    """Yield rows; the same for errors of the iterator."""
    try:
        yield from rows
    except MQError as error:
        _hide(error)
        raise


def _hide(error: MQError) -> None:
    """Hide the traceback, if this is a process of Spark's: it ends with this error."""
    if _is_worker():
        logger.debug("traceback of: %s", error, exc_info=error)
        os.environ[HIDE] = "1"


def _is_worker() -> bool:
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = "" if spec is None else spec.name
    return name.startswith("pyspark.") or name == "pocketmq.spark.worker_daemon"
