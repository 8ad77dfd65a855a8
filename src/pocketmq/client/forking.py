"""Whether this process is a fork of the one a client was made in.

Owns one counter. Asking the kernel for the process id at each call would cost more than the rest of
the check.
"""

import os

_forks = 0


def fork_count() -> int:
    """Give the number of forks between the first process and this one: its generation."""
    return _forks


def _forked() -> None:
    global _forks  # noqa: PLW0603 - a process has one generation
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
