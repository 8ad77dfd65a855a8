"""The dashboard as a server: a socket, the pages behind the guard, a graceful shutdown.

The web library takes a second to import, so it is imported only after everything else worked.
"""

import asyncio
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pocketmq.admin.admin import Admin
from pocketmq.dashboard.assignment.snapshots import poller_of
from pocketmq.dashboard.sampling import Job, Sampler, WatchedGroups
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.views import Views
from pocketmq.errors import CannotStart

if TYPE_CHECKING:
    from pocketmq.dashboard.app import Serving

_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound


class Dashboard:
    """Serves one cluster. One per process, since the web library has one global app."""

    def __init__(self, admin: Admin, settings: DashboardSettings) -> None:
        self._admin = admin
        self._settings = settings
        self._views = Views(admin, settings.events_topic)
        self._sampler = Sampler(self._samples)
        self._watched = WatchedGroups()
        self._serving: Serving | None = None

    async def start(self) -> str:
        """Start, and return the address for a browser.

        Raises `NameServersUnreachable`, and `CannotStart` if the port is taken.
        """
        listening = _listen(self._settings.host, self._settings.port)
        try:
            await self._admin.start()
            self._serving = self._prepare()
            await self._serving.start(listening)
            if self._settings.sampling:
                self._sampler.start()
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
        await self._sampler.close()
        await self._views.close()
        await self._admin.close()

    def _samples(self) -> Iterator[Job]:
        """Yield what to sample in a round: rates, lags, and the assignment of groups."""
        views = self._views
        yield views.cluster().sample
        yield views.groups().sample
        yield views.figures().sample
        known = views.groups().value
        groups = [each.group for each in known.groups if each.members] if known else []
        for group in self._watched.now(groups, asyncio.get_running_loop().time()):
            yield poller_of(views.pollers, self._admin, group).sample

    def _prepare(self) -> "Serving":
        from pocketmq.dashboard.app import Serving, build
        from pocketmq.dashboard.desk import Actions, Desk
        from pocketmq.dashboard.security.guard import Guard

        actions = Actions(self._admin, self._views, allowed=self._settings.allow_actions)
        app = build(Desk(self._admin, self._views, actions, self._settings))
        return Serving(Guard(app, self._settings))


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
