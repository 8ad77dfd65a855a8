"""A dashboard beside a cluster: a process of its own, which ends when the cluster does."""

import asyncio
import logging
import sys
from asyncio.subprocess import PIPE, Process
from importlib.util import find_spec

from pocketmq.errors import CannotStart

logger = logging.getLogger("pocketmq.cluster")

_PATIENCE = 30.0
"""Seconds for it to start."""
_GRACE = 10.0
"""Seconds for it to stop."""


def check_installed() -> None:
    """Raise `CannotStart` if the packages a dashboard needs are not installed."""
    try:
        found = find_spec("nicegui") is not None
    except ValueError:  # Python's answer for a module that was taken away
        found = False
    if not found:
        reason = "it needs further packages: pip install 'pocketmq[dashboard]'"
        raise CannotStart("the dashboard", reason)


class DashboardChild:
    """Starts and ends the process. Belongs to one event loop."""

    def __init__(self, port: int, *arguments: str) -> None:
        self._arguments = ("--port", str(port), *arguments)
        self._process: Process | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self, namesrv: str) -> str:
        """Start it and give its address. Raises `CannotStart`; it has told the reason itself."""
        command = (sys.executable, "-m", "pocketmq.cli", "dashboard", "--with-parent")
        self._process = await asyncio.create_subprocess_exec(
            *command, "-n", namesrv, *self._arguments, stdin=PIPE, stdout=PIPE, process_group=0
        )
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), _PATIENCE)
        except TimeoutError:
            raise CannotStart("the dashboard", f"not ready after {_PATIENCE:.0f} s") from None
        word, _, address = line.decode().strip().partition(" ")
        if word != "ready":
            raise CannotStart("the dashboard", "it has ended while it started")
        self._watching = asyncio.create_task(self._watch(self._process))
        return address

    async def stop(self) -> None:
        """End it. Harmless before `start`, and twice."""
        if self._watching is not None:
            self._watching.cancel()
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _GRACE)
        except TimeoutError:
            process.kill()
            await process.wait()

    def kill_now(self) -> None:
        """End it without waiting."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _watch(self, process: Process) -> None:
        code = await process.wait()
        logger.warning("the dashboard has ended by itself with code %d", code)
