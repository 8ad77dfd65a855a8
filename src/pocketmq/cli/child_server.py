"""Servers of this machine in processes of their own that end with the cluster beside them.

A server starts at once, or with its first client: until then its port listens in this process,
and the server's process inherits the sockets. Until that one accepts, the kernel holds the
clients, no more than its backlog. An idle cluster does without the process.
"""

import asyncio
import logging
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pocketmq.errors import CannotStart, ListenFailed, MQError
from pocketmq.net import Address, Limits
from pocketmq.net.listener import bind
from pocketmq.net.reasons import reason_of

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
            *(sys.executable, "-m", "pocketmq", *self._arguments, "-n", namesrv, *inherited),
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


class WaitingPort:
    """Listening sockets that wait for a client. Belongs to one event loop."""

    def __init__(
        self, part: str, start: Callable[[list[socket.socket]], Coroutine[Any, Any, object]]
    ) -> None:
        """Call `start` with the sockets for the first client; `part` is the server to people."""
        self._part = part
        self._start = start
        self._sockets: list[socket.socket] = []
        self._starting: asyncio.Task[None] | None = None

    async def open(self, host: str, port: int) -> Address:
        """Listen and return the address; 0 is any free port. Raises `ListenFailed`."""
        try:
            self._sockets = await bind(host, port, Limits().backlog)
        except (OSError, UnicodeError) as error:
            raise ListenFailed(str(Address(host, port)), reason_of(error)) from error
        self.wait()
        name = self._sockets[0].getsockname()
        return Address(name[0], name[1])

    def wait(self) -> None:
        """Start the server with the next client: it does not run."""
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            loop.add_reader(each.fileno(), self._first_client)

    async def close(self) -> None:
        """Listen no more; does nothing before `open` or a second time."""
        self._ignore()
        sockets, self._sockets = self._sockets, []
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait([self._starting])
        for each in sockets:
            each.close()

    def _ignore(self) -> None:
        loop = asyncio.get_running_loop()
        for each in self._sockets:
            loop.remove_reader(each.fileno())

    def _first_client(self) -> None:
        self._ignore()
        self._starting = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._start(self._sockets)
        except (MQError, OSError) as error:
            text = "%s failed to start: %s; closing its clients; the next one starts it again"
            logger.error(text, self._part, reason_of(error))  # noqa: TRY400 - no bug of ours
            self._turn_away()
            self.wait()

    def _turn_away(self) -> None:
        """Close the clients that wait."""
        for each in self._sockets:
            with suppress(OSError):  # none is left, or too many files are open
                while True:
                    each.accept()[0].close()
