"""What a server's process does for itself as it starts: signals, its parent's end, its name.

Signals that come while a server is still importing its parts, before a loop can handle them,
are remembered and carried out once the loop runs. To raise an exception instead, wherever the
program happens to be, would lose some: Python ignores what is raised in a destructor. Signals
are the process's, so this is module state. A file that imports next to nothing: it must be
loaded before everything else.
"""

import os
import signal
import sys

STOP_SIGNALS = tuple(
    signal.Signals[name]
    for name in ("SIGTERM", "SIGINT", "SIGHUP")
    if hasattr(signal, name)  # Windows has no SIGHUP
)
FORCED = 130
"""Exit code of a server that got a second signal to stop."""

_asked = False


def remember_stop_signals() -> None:
    """From now on remember a signal to stop; a second one ends the process at once."""
    for number in STOP_SIGNALS:
        signal.signal(number, _remember)


def was_asked_to_stop() -> bool:
    """Return whether a signal came before the loop could take it."""
    return _asked


def _remember(_number: int, _frame: object) -> None:
    global _asked  # noqa: PLW0603 - see above
    if _asked:
        os._exit(FORCED)
    _asked = True


_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def die_with_parent() -> None:
    """Ask Linux for SIGTERM once the thread that started this process has ended."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM))


def name_process(name: str) -> None:
    """Show a name, of which 15 bytes count, in Linux's list of processes."""
    _prctl(_PR_SET_NAME, name.encode())


def _prctl(option: int, value: int | bytes) -> None:
    if sys.platform != "linux":
        return
    import ctypes

    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):  # a C library without it: nothing depends on it alone
        return
