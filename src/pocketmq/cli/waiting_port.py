"""A port that listens before its server runs: the first client starts the server's process.

The sockets listen in this process and are inherited by the server's. Until that one accepts, the
kernel holds the clients, no more than its backlog. An idle cluster does without the process.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from pocketmq.errors import ListenFailed, MQError
from pocketmq.net.address import Address
from pocketmq.net.limits import Limits
from pocketmq.net.listener import bind
from pocketmq.net.reasons import reason_of

logger = logging.getLogger("pocketmq.cluster")


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
