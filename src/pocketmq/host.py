"""What operating systems offer differently: open files, exclusive locks of files.

Clients and tools run on Linux, macOS and Windows; servers on the first two.
"""

import os
from contextlib import suppress

from pocketmq.errors import CannotStart

try:
    import fcntl
    import resource
except ModuleNotFoundError:  # Windows
    import msvcrt

    def lock_file(fd: int) -> None:
        """Lock an open file for this process alone; BlockingIOError if another one has the lock."""
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except PermissionError as error:
            raise BlockingIOError(*error.args) from error

    def open_files_limit() -> int | None:
        """Return how many files this process may open; None if there is no limit."""
        return None

    def raise_open_files_limit() -> None:
        """Let this process open as many files as the system allows, as a JVM does."""

else:

    def lock_file(fd: int) -> None:
        """Lock an open file for this process alone; BlockingIOError if another one has the lock."""
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def open_files_limit() -> int | None:
        """Return how many files this process may open; None if there is no limit."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return None if soft == resource.RLIM_INFINITY else soft

    def raise_open_files_limit() -> None:
        """Let this process open as many files as the system allows, as a JVM does."""
        with suppress(OSError, ValueError):  # macOS reports limits that it does not grant
            _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def check_for_servers(part: str) -> None:
    """Raise CannotStart where servers do not run: a store needs positioned writes, for one."""
    if not hasattr(os, "pwrite"):
        reason = "servers run on Linux and macOS; on Windows use WSL or a container"
        raise CannotStart(part, reason)
