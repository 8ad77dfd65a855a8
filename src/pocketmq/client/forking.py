"""Whether this process is a fork of the one a client was made in.

Owns one counter. Asking the kernel for the process id at each call would cost more than the rest of
the check.
"""

import os
from collections.abc import Callable

_forks = 0
_after: list[Callable[[], None]] = []


def fork_count() -> int:
    """Give the number of forks between the first process and this one: its generation."""
    return _forks


def forget_after_fork(forget: Callable[[], None]) -> None:
    """Have `forget` called in every child, before anything else runs there."""
    _after.append(forget)


def _forked() -> None:
    global _forks  # noqa: PLW0603 - a process has one generation
    _forks += 1
    for forget in _after:
        forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
