"""Starting Spark for a command that Ctrl-C and SIGTERM may stop at any time, also meanwhile.

Spark's errors become one line; `--debug` adds Spark's own log of them, with Java's stack traces.

A thread of its own starts Spark: signals then find the main thread waiting, not inside Spark, and
Spark cannot replace our handlers. On a signal, the processes started so far are killed: a Java that
is asked to stop during its start prints pages of errors.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit

from pocketmq.errors import PipelineFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEBUG = "pocketmq.cli.pipeline.debug"
_PATIENCE = 10.0
_PAUSE = 0.02


debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _, wanted: ctx.meta.update({_DEBUG: wanted}),
    help="Print Spark's own log of errors, with Java's stack traces.",
)


class InterruptHandler:
    """What Ctrl-C and SIGTERM do: stop the command immediately, or a stream gracefully."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.graceful = False
        """Whether the first signal only sets `stop`."""

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if self.graceful and not self.stop.is_set():
            self.stop.set()
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Exit(128 + number)

    @contextmanager
    def at_signals(self) -> Iterator[None]:
        """Handle Ctrl-C and SIGTERM within the block."""
        before = [
            (number, signal.signal(number, self)) for number in (signal.SIGINT, signal.SIGTERM)
        ]
        try:
            yield
        finally:
            for number, handler in before:
                signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def started_spark(name: str, master: str, handler: InterruptHandler) -> "Iterator[SparkSession]":
    """Run Spark within the block. Raises `CannotStart`, and `PipelineFailed` for Spark's errors."""
    with handler.at_signals():
        spark = _start(f"pocketmq {name}", master)
        try:
            _make_active(spark)
            with spark_errors(name):
                yield spark
        finally:
            spark.stop()


@contextmanager
def spark_errors(name: str) -> Iterator[None]:
    """Raise `PipelineFailed` instead of Spark's errors."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from pocketmq.pipelines.queries import reason_of

    try:
        yield
    except (PySparkException, Py4JError) as problem:
        raise PipelineFailed(name, reason_of(problem)) from problem


def _start(name: str, master: str) -> "SparkSession":
    from pocketmq.spark import spark_session

    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    others = set(_descendants(os.getpid()))
    started: Future[SparkSession] = Future()

    def work() -> None:
        try:
            started.set_result(spark_session(name, master=master))
        except BaseException as problem:  # noqa: BLE001 - raised where it is waited for
            started.set_exception(problem)

    with _log_level():
        threading.Thread(target=work, name="start of Spark", daemon=True).start()
        try:
            return started.result()
        except (KeyboardInterrupt, Exit):
            _give_up(started, others)
            raise


@contextmanager
def _log_level() -> Iterator[None]:
    """Let a Java that starts within the block log nothing, unless asked for by `--debug`."""
    from pocketmq.spark.engine import LOG_LEVEL

    context = click.get_current_context(silent=True)
    if LOG_LEVEL in os.environ or (context is not None and context.meta.get(_DEBUG)):
        yield
        return
    os.environ[LOG_LEVEL] = "off"
    try:
        yield
    finally:
        del os.environ[LOG_LEVEL]


def _make_active(spark: "SparkSession") -> None:
    """Make the session, which another thread has started, the active one of this thread.

    Spark looks up registered sources in the active session of the calling thread.
    """
    java_class: Any = spark._get_j_spark_session_class(spark._jvm)  # noqa: SLF001 - as PySpark does
    java_class.setActiveSession(spark._jsparkSession)  # noqa: SLF001


def _give_up(started: "Future[SparkSession]", others: set[int]) -> None:
    """Kill what is being started; where processes cannot be listed, wait and stop it."""
    deadline = time.monotonic() + _PATIENCE
    while not started.done() and time.monotonic() < deadline:
        for process in _descendants(os.getpid()):
            if process not in others:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        time.sleep(_PAUSE)  # the thread may be about to start another
    if started.done() and started.exception() is None:
        with suppress(Exception):  # its Java may be dead by now
            started.result().stop()


def _descendants(process: int) -> list[int]:
    """Return the descendants of a process; none where there is no /proc.

    A parent comes before its children: a script that outlived its Java would print an error.
    """
    found: list[int] = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *_descendants(child)]
    return found
