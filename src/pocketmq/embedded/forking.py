"""Broker processes made by forking, where that is safe: Linux, one thread, no event loop yet.

Everything is imported once and its memory shared, so that a further broker costs a few milliseconds
instead of a third of a second. Brokers started later, from a running loop, get a fresh interpreter.
"""

import gc
import os
import signal
import sys
import threading
from pathlib import Path
from typing import IO, NoReturn

from pocketmq.embedded import child


class ForkedProcess:
    """A child as `subprocess.Popen` shows one: its pid, its pipes, its end."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code once there is one, negative for a signal."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def kill(self) -> None:
        """Send SIGKILL, if it is still there."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def fork_brokers(names: list[str]) -> dict[str, ForkedProcess]:
    """Fork a process for each broker, waiting for its order; none where forking is not safe."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return {}
    gc.collect()
    gc.freeze()  # a collection would write to every object, and so copy every shared page
    try:
        return {name: _fork() for name in names}
    finally:
        gc.unfreeze()


def _fork() -> ForkedProcess:
    order, to_child = os.pipe()
    from_child, report = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become_child(order, report)
    os.close(order)
    os.close(report)
    return ForkedProcess(pid, os.fdopen(to_child, "wb", 0), os.fdopen(from_child, "rb", 0))


def _become_child(order: int, report: int) -> NoReturn:
    """Run a broker and end here, whatever happens: the rest of the program is the parent's."""
    code = 1
    try:
        os.setpgid(0, 0)  # Ctrl-C goes to the parent alone, which stops its children gracefully
        os.dup2(order, 0)
        os.dup2(report, 1)
        highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
        os.closerange(3, highest + 1)  # among them the pipes of brokers forked before
        code = child.run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - the edge of the process
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)
