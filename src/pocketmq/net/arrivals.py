"""Sockets that a server has accepted and that are not open connections yet, within its limit."""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from pocketmq.net.limits import for_connections


class Arrivals:
    """The sockets that `welcome` makes connections of. Belongs to one event loop.

    `count_open` returns the number of connections that are open already; each takes `files`
    descriptors. A socket above the limit of `wanted` connections is closed.
    """

    def __init__(
        self,
        welcome: Callable[[socket.socket], Coroutine[Any, Any, None]],
        count_open: Callable[[], int],
        wanted: int,
        logger: logging.Logger,
        *,
        files: int = 1,
    ) -> None:
        self._welcome = welcome
        self._count_open = count_open
        self._wanted = wanted
        self._logger = logger
        self._files = files
        self._tasks: set[asyncio.Task[None]] = set()
        self._full = False

    def __len__(self) -> int:
        return len(self._tasks)

    def take(self, peer: socket.socket) -> None:
        """Accept a socket, or close it when there are too many."""
        allowed = for_connections(self._files * self._wanted) // self._files
        if self._count_open() + len(self._tasks) >= allowed:
            if not self._full:  # one line, not one for each connection
                text = "connection limit reached: %d open; closing further connections"
                self._logger.warning(text, allowed)
            self._full = True
            peer.close()
            return
        task = asyncio.create_task(self._welcome(peer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def one_left(self) -> None:
        """Take note that a connection has ended: reaching the limit is logged again."""
        self._full = False

    async def end(self, *, cancel: bool) -> None:
        """Wait for all of them; with `cancel`, those that wait for their peer end now."""
        tasks = set(self._tasks)
        if not tasks:
            return
        if cancel:
            await asyncio.sleep(0)  # one that has not begun could not close its socket
            for task in tasks:
                task.cancel()
        await asyncio.wait(tasks)
