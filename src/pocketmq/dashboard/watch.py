"""What a dashboard keeps open for one cluster: connections, pollers, samples.

The cluster is sampled while no page is open, so that the charts have a past. That takes a small
part of the time, however large the cluster is: after a job the sampler rests several times as
long as the job took. What a page polls anyway is not sampled as well.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator

from pocketmq.admin.admin import Admin
from pocketmq.dashboard.assignment.snapshots import poller_of
from pocketmq.dashboard.history_file import HistoryFile, KeptFigures
from pocketmq.dashboard.settings import DashboardSettings
from pocketmq.dashboard.views import Views
from pocketmq.errors import MQError

logger = logging.getLogger("pocketmq.dashboard")

EVERY = 10.0
"""Seconds between two rounds of samples."""
RESTS = 8.0
"""The rest after a round is at least this many times its duration."""
MOST_GROUPS = 50
"""Groups whose assignment is sampled."""
REMEMBERED = 6 * 3600.0
"""Seconds for which a group without members is still sampled."""
_AGAIN = 10.0
"""Seconds after which a cluster that could not be reached is tried again."""

Job = Callable[[], Awaitable[object]]


class Sampler:
    """Runs jobs one after another, round by round. Belongs to one loop."""

    def __init__(self, jobs: Callable[[], Iterable[Job]], every: float = EVERY) -> None:
        self._jobs = jobs
        self._every = every
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start sampling."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop sampling. Harmless before `start`."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            for job in self._jobs():
                try:
                    await job()
                except Exception:
                    logger.exception("sampling the cluster failed; retrying at the next interval")
            took = clock() - began
            await asyncio.sleep(max(self._every - took, RESTS * took))


class WatchedGroups:
    """The groups whose assignment is worth sampling: with members now, or lately. Pure."""

    def __init__(self, most: int = MOST_GROUPS) -> None:
        self._most = most
        self._seen: dict[str, float] = {}

    def now(self, with_members: Iterable[str], at: float) -> list[str]:
        """Return the groups to sample; those that had members last, if there are too many."""
        self._seen |= dict.fromkeys(with_members, at)
        recent = [name for name, seen in self._seen.items() if at - seen < REMEMBERED]
        recent.sort(key=lambda name: (-self._seen[name], name))
        self._seen = {name: self._seen[name] for name in recent[: self._most]}
        return sorted(self._seen)


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
