"""Sockets from bind to accept, and until they are open connections.

`Listener` is bound to every address of a host under one port and accepts until it is closed;
ours instead of asyncio's own server, which leaks sockets that it accepted just before it was
closed. `Arrivals` holds accepted sockets within a server's limit; others decide what becomes of
them.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from typing import Any

from pocketmq.net.address import Address
from pocketmq.net.limits import for_connections
from pocketmq.net.reasons import reason_of

logger = logging.getLogger("pocketmq.net")

_PORT_TRIES = 5
_ACCEPTED_PER_TURN = 64
_PAUSE = 1.0  # seconds without accepting, once this process is out of files or memory
_NOT_HERE = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Listener:
    """Accepts connections on its sockets and hands them over, set to non-blocking."""

    def __init__(
        self,
        sockets: list[socket.socket],
        accepted: Callable[[socket.socket], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        name = sockets[0].getsockname()
        self.address = Address(name[0], name[1])
        self._sockets = sockets
        self._accepted = accepted
        self._loop = loop
        self._resuming: asyncio.TimerHandle | None = None
        self._resume()

    def close(self) -> None:
        """Accept no more connections. Those in the kernel's queue are reset."""
        if self._resuming is not None:
            self._resuming.cancel()
        self._pause()
        for listening in self._sockets:
            listening.close()
        self._sockets = []

    def _resume(self) -> None:
        self._resuming = None
        for listening in self._sockets:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def _pause(self) -> None:
        for listening in self._sockets:
            self._loop.remove_reader(listening.fileno())

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_ACCEPTED_PER_TURN):
            try:
                peer, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                logger.warning(
                    "%s: accepting failed: %s; retrying in %g s",
                    self.address, reason_of(error), _PAUSE,
                )  # fmt: skip
                self._pause()
                self._resuming = self._loop.call_later(_PAUSE, self._resume)
                return
            peer.setblocking(False)
            with suppress(OSError):  # macOS refuses it for a peer that is gone already
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted(peer)
            if not self._sockets:  # closed by the callback
                return


async def bind(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Listen on all addresses of a host (every interface if empty) under one port.

    Raises OSError, or UnicodeError for an invalid name.
    """
    places = await _resolve(host, port)
    for _ in range(_PORT_TRIES - 1):
        try:
            return _listen(places, backlog)
        except OSError as error:
            # The port the kernel chose for the first address may be taken on the next.
            if port or len(places) == 1 or error.errno != errno.EADDRINUSE:
                raise
    return _listen(places, backlog)


Place = tuple[int, Address]


async def _resolve(host: str, port: int) -> list[Place]:
    """Return families and addresses; only a host name costs a look-up in a thread."""
    kind, passive = socket.SOCK_STREAM, socket.AI_PASSIVE
    try:
        numeric = passive | socket.AI_NUMERICHOST
        found = socket.getaddrinfo(host or None, port, type=kind, flags=numeric)
    except socket.gaierror:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=kind, flags=passive)
    return list(dict.fromkeys((each[0], Address(str(each[4][0]), port)) for each in found))


def _listen(places: list[Place], backlog: int) -> list[socket.socket]:
    port = places[0][1].port
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    with ExitStack() as undo:
        for family, (host, _) in places:
            try:
                listening = undo.enter_context(_listen_at(family, host, port, backlog))
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                missing = error  # names may have IPv6 addresses on machines without IPv6
            else:
                port = listening.getsockname()[1]
                sockets.append(listening)
        if missing is not None and not sockets:
            raise missing
        undo.pop_all()
    return sockets


def _listen_at(family: int, host: str, port: int, backlog: int) -> socket.socket:
    with ExitStack() as undo:
        listening = undo.enter_context(socket.socket(family, socket.SOCK_STREAM))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((host, port))
        listening.listen(backlog)
        listening.setblocking(False)
        undo.pop_all()
    return listening


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
