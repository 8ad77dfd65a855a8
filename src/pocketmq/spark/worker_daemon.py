"""Spark's daemon of Python workers, quiet about workers that Spark has hung up on.

When a query ends early, or is told to end, Spark closes the sockets of workers that still have
something to say. Its own daemon prints a stack trace for each, in the middle of what a user reads.
Spark starts this module instead where `spark.python.daemon.module` names it.
"""

import sys
import traceback
from typing import Any

_print = traceback.print_exc


def _print_unless_hung_up(*arguments: Any, **options: Any) -> None:
    if not isinstance(sys.exc_info()[1], BrokenPipeError | ConnectionResetError):
        _print(*arguments, **options)


if __name__ == "__main__":
    from pyspark import daemon

    traceback.print_exc = _print_unless_hung_up
    daemon.manager()
