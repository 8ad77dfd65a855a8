"""Samples the cluster while no page is open, so that the charts have a past.

Spends a small part of the time on it, however large the cluster is: after a job it rests several
times as long as the job took. What a page polls anyway is not sampled as well.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

logger = logging.getLogger("pocketmq.dashboard")

EVERY = 10.0
"""Seconds between two rounds."""
RESTS = 8.0
"""The rest after a round is at least this many times its duration."""
MOST_GROUPS = 50
"""Groups whose assignment is sampled."""
REMEMBERED = 6 * 3600.0
"""Seconds for which a group without members is still sampled."""

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
                    logger.exception("sampling failed")
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
