"""What a dashboard keeps open for one cluster: connections, pollers, samples."""

import asyncio
import logging
from collections.abc import Iterator

from pocketmq.admin.admin import Admin
from pocketmq.dashboard.assignment.snapshots import poller_of
from pocketmq.dashboard.history_file import HistoryFile
from pocketmq.dashboard.keeping import KeptFigures
from pocketmq.dashboard.sampling import Job, Sampler, WatchedGroups
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.views import Views
from pocketmq.errors import MQError

logger = logging.getLogger("pocketmq.dashboard")

_AGAIN = 10.0
"""Seconds after which a cluster that could not be reached is tried again."""


class ClusterWatch:
    """Watches one cluster. Belongs to one loop."""

    def __init__(
        self,
        admin: Admin,
        settings: DashboardSettings,
        name: str = "",
        history: HistoryFile | None = None,
    ) -> None:
        self.admin = admin
        self.views = Views(admin, settings.events_topic)
        self._kept = None if history is None else KeptFigures(history, name, self.views.recorders)
        self._sampling = settings.sampling
        self._sampler = Sampler(self.samples)
        self._watched = WatchedGroups()
        self._connecting: asyncio.Task[None] | None = None

    async def start_sampling(self) -> None:
        """Load the past if it is kept, and start sampling, if the settings say so."""
        if self._kept is not None:
            await self._kept.start()
        if self._sampling:
            self._sampler.start()

    def start_when_reachable(self, name: str) -> None:
        """Connect in the background, so that a cluster that is down keeps no other from view."""
        self._connecting = asyncio.get_running_loop().create_task(self._connect(name))

    async def close(self) -> None:
        """Close everything. Harmless before a start."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait({self._connecting})
        await self._sampler.close()
        if self._kept is not None:
            await self._kept.close()
        await self.views.close()
        await self.admin.close()

    def samples(self) -> Iterator[Job]:
        """Yield what to sample in a round: rates, lags, and the assignment of groups."""
        views = self.views
        yield views.cluster().sample
        yield views.groups().sample
        yield views.figures().sample
        known = views.groups().value
        groups = [each.group for each in known.groups if each.members] if known else []
        for group in self._watched.now(groups, asyncio.get_running_loop().time()):
            yield poller_of(views.pollers, self.admin, group).sample

    async def _connect(self, name: str) -> None:
        told = False
        while True:
            try:
                await self.admin.start()
            except MQError as error:
                if not told:
                    told = True
                    logger.warning(
                        "cluster cannot be reached: cluster=%s error=%s; retrying", name, error
                    )
                await asyncio.sleep(_AGAIN)
            else:
                await self.start_sampling()
                return
