"""A server of this machine in a process of its own that ends with the cluster beside it."""

import asyncio
import logging
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence

from pocketmq.errors import CannotStart

logger = logging.getLogger("pocketmq.cluster")

_PATIENCE = 30.0
"""Seconds for a child to start."""
_GRACE = 10.0
"""Seconds for a child to stop."""


class ChildServer:
    """The process of a `pocketmq` command, `part` to people. Belongs to one event loop."""

    def __init__(
        self, command: str, part: str, *arguments: str, secrets: Mapping[str, str] | None = None
    ) -> None:
        """Take the command's arguments, and what is only in its environment."""
        self._part = part
        self._arguments = (command, "--with-parent", *arguments)
        self._secrets = dict(secrets or {})
        self._process: Process | None = None
        self._watching: asyncio.Task[None] | None = None
        self.on_exit: Callable[[], None] = lambda: None
        """Called when it has exited without being stopped."""

    async def start(self, namesrv: str, sockets: Sequence[socket.socket] = ()) -> str:
        """Start it and return its address; it may inherit sockets that listen.

        Raises `CannotStart`; the child logs the reason.
        """
        numbers = [each.fileno() for each in sockets]
        inherited = ("--sockets", ",".join(map(str, numbers))) if numbers else ()
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pocketmq.cli", *self._arguments, "-n", namesrv, *inherited),
            pass_fds=numbers,
            stdin=PIPE,
            stdout=PIPE,
            start_new_session=True,  # Ctrl-C goes to the parent alone; uvloop knows no groups
            env=os.environ | self._secrets,
        )
        assert self._process.stdout is not None
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), _PATIENCE)
        except TimeoutError:
            self.kill_now()
            raise CannotStart(f"the {self._part}", f"not ready after {_PATIENCE:.0f} s") from None
        word, _, address = line.decode().strip().partition(" ")
        if word != "ready":
            raise CannotStart(f"the {self._part}", "its process exited during start-up")
        self._watching = asyncio.create_task(self._watch(self._process))
        return address

    async def stop(self) -> None:
        """Stop it; does nothing before `start` or a second time."""
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
        """Kill it without waiting."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _watch(self, process: Process) -> None:
        code = await process.wait()
        logger.warning("%s process exited unexpectedly: code=%d", self._part, code)
        self.on_exit()
