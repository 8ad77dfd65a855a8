"""A broker in a process of its own, seen from the parent.

The parent holds two pipes: the child's standard input, whose end makes it stop, and its standard
output, which brings its report and ends when the child does. Pipes rather than SIGCHLD or a thread
that waits: this works on any loop, also outside the main thread.
"""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Protocol

from pocketmq.embedded.broker_runner import BrokerOrder, BrokerReady, Ended, read_report, write_line
from pocketmq.errors import CannotStart, PartEnded

logger = logging.getLogger("pocketmq.cluster")

START_DEADLINE = 60.0
"""Seconds for a start, which may have a long commit log to recover."""
STOP_DEADLINE = 15.0
REAP_STEP = 0.002


class Process(Protocol):
    """What is used of `subprocess.Popen`."""

    @property
    def pid(self) -> int:
        """Its number."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """Our end of its standard input."""

    @property
    def stdout(self) -> IO[bytes] | None:
        """Our end of its standard output."""

    def poll(self) -> int | None:
        """Return its exit code, once it has ended."""

    def kill(self) -> None:
        """Send SIGKILL."""


class ChildBroker:
    """A broker process. Created on a running loop; the process begins to load at once."""

    def __init__(self, name: str, ended: Ended, process: Process | None = None) -> None:
        self.name = name
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._expected = False
        self._heard = b""
        self._report: asyncio.Future[bytes] = self._loop.create_future()
        self._gone: asyncio.Future[str] = self._loop.create_future()
        self._reaping: asyncio.Task[None] | None = None
        self._process = process or spawn(name)
        self._stdin, self._stdout = _pipes(self._process)
        os.set_blocking(self._stdout.fileno(), False)
        self._loop.add_reader(self._stdout.fileno(), self._readable)

    @property
    def pid(self) -> int:
        """The child's."""
        return self._process.pid

    async def start(self, order: BrokerOrder) -> str:
        """Send the order and wait until the broker serves."""
        try:
            with contextlib.suppress(BrokenPipeError):
                if not self._stdin.closed:  # if it has ended already, the report is empty
                    self._stdin.write(write_line(order))
            async with asyncio.timeout(START_DEADLINE):
                line = await self._report
        except TimeoutError:
            await self.kill()
            reason = f"it was not ready within {START_DEADLINE:g} s"
            raise CannotStart(self.name, reason) from None
        except BaseException:
            await self.kill()
            raise
        if not line:
            raise PartEnded(self.name, await self._gone)
        report = read_report(line)
        if isinstance(report, BrokerReady):
            return report.address
        await self.stop()
        raise CannotStart(self.name, report.reason)

    async def stop(self) -> None:
        """Close its standard input and wait for its end; after a while, kill it."""
        self._expected = True
        self._stdin.close()
        try:
            async with asyncio.timeout(STOP_DEADLINE):
                await asyncio.shield(self._gone)
        except TimeoutError:
            logger.error("%s did not stop within %g s; killing it", self.name, STOP_DEADLINE)  # noqa: TRY400 - nothing was raised
            await self.kill()

    async def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        self.kill_now()
        await asyncio.shield(self._gone)

    def kill_now(self) -> None:
        """Send SIGKILL without waiting."""
        self._expected = True
        self._process.kill()

    # The child's standard output: one line, then silence until the end

    def _readable(self) -> None:
        piece = os.read(self._stdout.fileno(), 65536)
        self._heard += piece
        if self._report.done():
            self._heard = b""
        elif not piece or self._heard.endswith(b"\n"):
            self._report.set_result(self._heard if piece else b"")
        if not piece:
            self._loop.remove_reader(self._stdout.fileno())
            self._reaping = self._loop.create_task(self._reap(), name=f"reap {self.name}")

    async def _reap(self) -> None:
        """Take the exit code, which follows the end of the pipe at once."""
        while (code := self._process.poll()) is None:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(REAP_STEP)
        self._stdin.close()
        self._stdout.close()
        how = how_it_ended(code)
        self._gone.set_result(how)
        if not self._expected and self._report.result():
            self._ended(how)


def _pipes(process: Process) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def how_it_ended(code: int) -> str:
    """Return in words what an exit code of `subprocess` means."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def spawn(name: str) -> Process:
    """Start a fresh interpreter that waits for its order."""
    return subprocess.Popen(  # noqa: S603 - our own module, by our own interpreter
        [sys.executable, "-P", "-m", "pocketmq.embedded.child", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=_environment(),
        process_group=0,  # Ctrl-C goes to the parent alone, which stops its children gracefully
    )


def _environment() -> dict[str, str]:
    """Let the child find this package where we found it, also if nothing is installed."""
    environment = dict(os.environ)
    root = Path(__file__).parents[2]
    if root.name not in {"site-packages", "dist-packages"}:
        path = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{path}{os.pathsep}{root}" if path else str(root)
    return environment
