"""A `pocketmq` command that keeps running, as a test meets it: a real process, ready by its line."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

POCKETMQ = Path(sys.executable).with_name("pocketmq")
LONGEST_PAUSE = 0.5
READY = re.compile(r"ready namesrv=(\S+)(?: brokers=(\S+))?(?: grpc=(\S+))?(?: dashboard=\S+)?\n")


class CommandProcess:
    """Runs the console script until the test is over; its stderr is gathered meanwhile."""

    ready_line = re.compile("ready .*\n")

    def __init__(
        self,
        *arguments: str,
        cwd: Path | None = None,
        command: tuple[str, ...] = (str(POCKETMQ),),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        if arguments[:1] == ("up",) and "--grpc" not in arguments:
            arguments += ("--no-grpc",)  # a process more, which most tests are not about
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env=os.environ | (variables or {}),
        )
        self.ready = ""
        self.lines: list[str] = []
        self._gathering = threading.Thread(target=self._gather)
        self._gathering.start()

    def __enter__(self) -> Self:
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline()
        if self.ready_line.fullmatch(self.ready) is None:
            self.__exit__(None, None, None)
            raise AssertionError((self.ready, self.errors()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._gathering.join(60)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def errors(self) -> str:
        """What came on stderr so far."""
        return "".join(self.lines)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and give the exit code; nothing more may come on stdout."""
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._gathering.join(60)
        assert self.process.stdout is not None
        assert self.process.stdout.read() == ""
        return code

    def _told(self) -> re.Match[str]:
        """What the ready line says."""
        found = self.ready_line.fullmatch(self.ready)
        assert found is not None
        return found

    def _gather(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)


class ServerProcess(CommandProcess):
    """A name server, a broker or a whole cluster."""

    ready_line = READY

    @property
    def namesrv(self) -> str:
        """The name server's address, from the ready line."""
        return self._told()[1]

    @property
    def brokers(self) -> dict[str, str]:
        """Brokers' addresses by name, from the ready line."""
        return dict(part.split("@") for part in self._told()[2].split(","))

    @property
    def grpc(self) -> str:
        """The address for gRPC clients, from the ready line."""
        return self._told()[3]

    def children(self) -> list[int]:
        """Process ids of its children."""
        return children_of(self.process.pid)


def children_of(pid: int) -> list[int]:
    """Process ids of a process's children, of all its threads."""
    tasks = Path(f"/proc/{pid}/task")
    while True:
        threads = list(tasks.iterdir())  # fails if there is no such process any more
        try:
            texts = [(thread / "children").read_text() for thread in threads]
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread has ended, and another one has its children
        return [int(child) for text in texts for child in text.split()]


def command_line(pid: int) -> str:
    """The words that a process was started with; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def kill(pid: int) -> None:
    """Send SIGKILL."""
    os.kill(pid, signal.SIGKILL)


def wait_for(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Wait for a condition; fail if it does not come true in time."""
    deadline = time.monotonic() + seconds
    while not looked(condition, 0.005):
        in_time = time.monotonic() < deadline or condition()
        assert in_time, f"waited {seconds} s in vain for {what}"


def looked(condition: Callable[[], object], pause: float) -> bool:
    """Return whether a condition is true; if not, pause, and longer after a look that was costly.

    What is waited for needs the processors, too: looks that follow each other at once delay it.
    """
    began, worked = time.monotonic(), time.thread_time()
    if condition():
        return True
    took = max(time.monotonic() - began, 4 * (time.thread_time() - worked))
    time.sleep(min(max(pause, took), LONGEST_PAUSE))
    return False
