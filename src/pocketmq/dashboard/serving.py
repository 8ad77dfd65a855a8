"""The HTTP server under the pages: uvicorn, told when to start and when to end."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from pocketmq.dashboard.nonces import App
from pocketmq.errors import CannotStart

_LARGEST_FRAME = 1 << 20
_GRACE = 1
"""Seconds for open connections when the dashboard stops; browsers would keep them for ever."""


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it, and says when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        self.ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Serving:
    """Serves an application on a socket until it is stopped. Belongs to one loop."""

    def __init__(self, app: App) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            log_level="warning",
            ws="wsproto",
            ws_max_size=_LARGEST_FRAME,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
        )
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self, listening: socket.socket) -> None:
        """Serve from now on. Raises `CannotStart` if the application does not start."""
        self._task = asyncio.create_task(self._server.serve(sockets=[listening]))
        ready = asyncio.create_task(self._server.ready.wait())
        await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._task.done() or not self._server.started:
            raise CannotStart("the dashboard", "its pages did not start")

    async def stop(self) -> None:
        """End connections and the application."""
        if self._task is not None:
            self._server.should_exit = True
            await asyncio.wait({self._task})
