"""Spark's Python processes, without stack traces about connections that Spark itself has closed.

When a query ends early, Spark closes the sockets of Python processes that are still writing, and
each of them would print a stack trace in the middle of the user's output.

Spark starts this module as its daemon of Python workers where `spark.python.daemon.module` names
it; imported, it only offers the functions.
"""

import socket
import sys
import traceback
from typing import Any

HUNG_UP = (EOFError, BrokenPipeError, ConnectionResetError)
"""What reading from Spark, and writing to it, raises after it has closed the connection."""

_print = traceback.print_exc


def silence_hang_ups() -> None:
    """Suppress stack traces that only say that Spark has closed a connection."""
    traceback.print_exc = _print_unless_hung_up


def silence_planning_daemon() -> None:
    """Suppress them if this process is the daemon that plans: no Spark setting names another."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == "pyspark.daemon":
        silence_hang_ups()


def _print_unless_hung_up(*arguments: Any, **options: Any) -> None:
    error = sys.exc_info()[1]
    if not isinstance(error, HUNG_UP) or not _raised_by_spark(error):
        _print(*arguments, **options)


def _raised_by_spark(error: BaseException) -> bool:
    """Return whether Spark's own code raised it; errors of users' functions must be printed."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    # By file: a module that is run as a program has another name.
    return bool(files) and files[-1].startswith((*sys.modules["pyspark"].__path__, socket.__file__))


if __name__ == "__main__":
    from pyspark import daemon

    silence_hang_ups()
    daemon.manager()
