"""Spark started for a command that Ctrl-C and SIGTERM may end at any time, while it starts too.

Spark is started by a thread of its own: the signals then find the main thread waiting, not in the
midst of Spark, and Spark installs no handler instead of ours. What it has started by then is
killed: a Java that is told to end while it starts complains at length.
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

from click.exceptions import Exit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE = 10.0
_PAUSE = 0.02


class InterruptHandler:
    """What Ctrl-C and SIGTERM do: end the command at once, or have a stream end in order."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.in_order = False
        """Whether the first one only sets `stop`."""

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Take a signal."""
        if self.in_order and not self.stop.is_set():
            self.stop.set()
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise Exit(128 + number)

    @contextmanager
    def at_signals(self) -> Iterator[None]:
        """Be called at Ctrl-C and SIGTERM meanwhile."""
        before = [
            (number, signal.signal(number, self)) for number in (signal.SIGINT, signal.SIGTERM)
        ]
        try:
            yield
        finally:
            for number, handler in before:
                signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def started_spark(name: str, master: str, ending: InterruptHandler) -> "Iterator[SparkSession]":
    """Have Spark run meanwhile. Raises `CannotStart`."""
    with ending.at_signals():
        spark = _start(f"pocketmq {name}", master)
        try:
            _make_active(spark)
            yield spark
        finally:
            spark.stop()


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

    threading.Thread(target=work, name="start of Spark", daemon=True).start()
    try:
        return started.result()
    except (KeyboardInterrupt, Exit):
        _give_up(started, others)
        raise


def _make_active(spark: "SparkSession") -> None:
    """Have this thread's work be that of the session, which another thread has started.

    Sources that are registered with a session are looked for in the thread's own.
    """
    java_class: Any = spark._get_j_spark_session_class(spark._jvm)  # noqa: SLF001 - as it does itself
    java_class.setActiveSession(spark._jsparkSession)  # noqa: SLF001


def _give_up(started: "Future[SparkSession]", others: set[int]) -> None:
    """Kill what is being started; where processes cannot be listed, wait and stop it instead."""
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
    """List the processes that a process has started, and so on; none where there is no /proc.

    Each comes before its own: a script that outlived its Java would complain.
    """
    found: list[int] = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, children.read_text().split()):
                found += [child, *_descendants(child)]
    return found
