"""Spark's Python processes, quiet about Spark having hung up on them.

When a query ends early, or is told to end, Spark closes the sockets of processes that still have
something to say, and each would print a stack trace in the middle of what a user reads.
"""

import socket
import sys
import traceback
from typing import Any

HUNG_UP = (EOFError, BrokenPipeError, ConnectionResetError)
"""What reading from Spark, and writing to it, raises then."""

_print = traceback.print_exc


def be_quiet() -> None:
    """Leave out the stack traces that say no more than that."""
    traceback.print_exc = _print_unless_hung_up


def be_quiet_in_daemons() -> None:
    """Do so if this process is one of Spark's daemons that plan: no setting names another."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == "pyspark.daemon":
        be_quiet()


def _print_unless_hung_up(*arguments: Any, **options: Any) -> None:
    error = sys.exc_info()[1]
    if not isinstance(error, HUNG_UP) or not _of_spark(error):
        _print(*arguments, **options)


def _of_spark(error: BaseException) -> bool:
    """Tell whether Spark's own code met it; what users' functions meet is theirs to hear of."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    # By file: a module that is run as a program has another name.
    return bool(files) and files[-1].startswith((*sys.modules["pyspark"].__path__, socket.__file__))
