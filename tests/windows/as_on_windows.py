"""A Python without what Windows lacks; runs the module that is named, as `python -m` does.

python -m tests.windows.as_on_windows MODULE ARGUMENT…
"""

import asyncio
import os
import runpy
import signal
import sys
from importlib.abc import MetaPathFinder
from types import ModuleType

_MODULES = {"fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
_OF_OS = (
    "O_CLOEXEC O_DIRECTORY O_NOFOLLOW chown fchmod fdatasync fork geteuid getgid getuid killpg "
    "posix_fallocate pread preadv pwrite pwritev register_at_fork sched_getaffinity setpgid "
    "setpriority setsid statvfs uname"
)
_OF_SIGNAL = (
    "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGQUIT SIGSTOP SIGUSR1 SIGUSR2 pthread_sigmask "
    "setitimer"
)


class _NotOnWindows(MetaPathFinder):
    """Finds no module that Windows lacks."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        del path, target
        if name in _MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class _Msvcrt(ModuleType):
    """Windows' own, as far as it is used."""

    LK_NBLCK = 2

    @staticmethod
    def locking(fd: int, mode: int, size: int) -> None:
        """Lock nothing."""


def _lose(module: ModuleType, names: str) -> None:
    for name in names.split():
        vars(module).pop(name, None)


def _not_implemented(*_: object) -> None:
    raise NotImplementedError


def become_windows() -> None:
    """Take from this process what Windows lacks."""
    sys.meta_path.insert(0, _NotOnWindows())
    for name in _MODULES:
        sys.modules.pop(name, None)
    sys.modules["msvcrt"] = _Msvcrt("msvcrt")
    _lose(os, _OF_OS)
    _lose(signal, _OF_SIGNAL)
    for method in ("add_signal_handler", "remove_signal_handler"):
        setattr(asyncio.SelectorEventLoop, method, _not_implemented)


if __name__ == "__main__":
    become_windows()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
