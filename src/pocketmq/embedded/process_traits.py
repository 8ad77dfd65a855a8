"""What a child process asks of Linux: a signal when its parent ends, and its name in lists."""

import signal
import sys

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
