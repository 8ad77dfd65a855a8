"""The dashboard as a server: a socket, the pages behind the guard, a graceful shutdown.

The web library takes a second to import, so it is imported only after everything else worked.
"""

import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pocketmq.admin.admin import Admin
from pocketmq.dashboard.history_file import HistoryFile
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.watch import ClusterWatch
from pocketmq.errors import CannotStart

if TYPE_CHECKING:
    from pocketmq.dashboard.app import Serving

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound


class Dashboard:
    """Serves one cluster, and others by name. One per process: the web library has one global app.

    The first cluster must be reachable at the start; the others are shown once they are.
    """

    def __init__(
        self,
        admin: Admin,
        settings: DashboardSettings,
        others: Mapping[str, Admin] = MappingProxyType({}),
    ) -> None:
        self._settings = settings
        history = None if settings.history is None else HistoryFile(settings.history)
        self._history = history
        self._watch = ClusterWatch(admin, settings, "", history)
        self._others = {
            name: ClusterWatch(each, settings, name, history) for name, each in others.items()
        }
        self._serving: Serving | None = None

    async def start(self) -> str:
        """Start, and return the address for a browser.

        Raises `NameServersUnreachable`, and `CannotStart` if the port is taken.
        """
        listening = _listen(self._settings.host, self._settings.port)
        try:
            await self._watch.admin.start()
            self._serving = self._prepare()
            await self._serving.start(listening)
            await self._watch.start_sampling()
            for name, watch in self._others.items():
                watch.start_when_reachable(name)
        except BaseException:
            listening.close()
            raise
        host, port = listening.getsockname()[:2]
        shown = _WILDCARDS.get(host, host)
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"

    async def stop(self) -> None:
        """Stop. Harmless before `start`."""
        if self._serving is not None:
            await self._serving.stop()
        for watch in (self._watch, *self._others.values()):
            await watch.close()
        if self._history is not None:
            self._history.close()

    def _prepare(self) -> "Serving":
        from pocketmq.dashboard.app import Serving, build
        from pocketmq.dashboard.desk import Actions, Desk, Desks
        from pocketmq.dashboard.security.guard import Guard

        watches = {"": self._watch, **self._others}
        allowed, names = self._settings.allow_actions, tuple(watches)
        desks = [
            Desk(
                watch.admin,
                watch.views,
                Actions(watch.admin, watch.views, allowed=allowed),
                self._settings,
                name,
                names,
            )
            for name, watch in watches.items()
        ]
        return Serving(Guard(build(Desks(*desks)), self._settings))


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
