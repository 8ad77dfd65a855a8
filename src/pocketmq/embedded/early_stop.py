"""Signals that come while a server is still importing its parts, before a loop can handle them.

They are remembered and carried out once the loop runs. To raise an exception instead, wherever the
program happens to be, would lose some: Python ignores what is raised in a destructor. Signals are
the process's, so this is module state. A file of its own, which imports next to nothing: it must be
loaded before everything else.
"""

import os
import signal

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
