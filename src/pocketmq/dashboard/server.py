"""The dashboard as a server: a socket, the pages behind the guard, a clean end."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from pocketmq.admin.admin import Admin
from pocketmq.dashboard.actions import Actions
from pocketmq.dashboard.app import build
from pocketmq.dashboard.desk import Desk
from pocketmq.dashboard.guard import Guard
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.views import Views
from pocketmq.errors import CannotStart

_LARGEST_FRAME = 1 << 20
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound
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


class Dashboard:
    """Serves one cluster. There is one in a process, since the pages' library has one app."""

    def __init__(self, admin: Admin, settings: DashboardSettings) -> None:
        self._admin = admin
        self._settings = settings
        self._views = Views(admin)
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Start and give the address for a browser.

        Raises `NameServersUnreachable`, and `CannotStart` if the port is taken.
        """
        listening = _listen(self._settings.host, self._settings.port)
        try:
            await self._admin.start()
        except BaseException:
            listening.close()
            raise
        actions = Actions(self._admin, self._views, allowed=self._settings.allow_actions)
        app = build(Desk(self._admin, self._views, actions, self._settings))
        config = uvicorn.Config(
            Guard(app, self._settings),
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
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]))
        ready = asyncio.create_task(self._server.ready.wait())
        await asyncio.wait({self._serving, ready}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._serving.done() or not self._server.started:
            raise CannotStart("the dashboard", "its pages did not start")
        host, port = listening.getsockname()[:2]
        shown = _WILDCARDS.get(host, host)
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"

    async def stop(self) -> None:
        """End it. Harmless before `start`."""
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await asyncio.wait({self._serving})
        await self._views.close()
        await self._admin.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
            listening.setblocking(False)
        except OSError:
            listening.close()
            raise
    except OSError as problem:
        reason = f"it cannot listen on {host}:{port}: {problem.strerror or problem}"
        raise CannotStart("the dashboard", reason) from problem
    return listening
