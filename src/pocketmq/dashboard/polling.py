"""Polling a cluster, once for all open pages.

A `Poller` repeats one query as long as a page wants it, and stops when none does; all browsers
share its answer, so that the load on the cluster does not grow with the number of viewers. It knows
neither pages nor what is queried.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar, cast

from pocketmq.errors import MQError

logger = logging.getLogger("pocketmq.dashboard")

T = TypeVar("T")

INTERVAL = 2.0
"""Seconds between two polls."""
RESTS = 4.0
"""The pause after a poll is at least this many times its duration, to spare large clusters."""
WANTED_FOR = 10.0
"""Seconds without a viewer after which polling stops."""
FORGOTTEN_AFTER = 60.0
"""Seconds without a viewer after which an answer is dropped."""


class Poller(Generic[T]):
    """One query, its last answer, and the time of it. Belongs to the loop it was made on."""

    def __init__(
        self,
        query: Callable[[], Awaitable[T]],
        interval: float = INTERVAL,
        rests: float = RESTS,
    ) -> None:
        self._query = query
        self._interval = interval
        self._rests = rests
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._hurry = asyncio.Event()
        self.value: T | None = None
        """The last answer; None before the first."""
        self.problem: str | None = None
        """Why the last poll failed, if it did."""
        self.at = 0.0
        """The time of the answer, in seconds since 1970."""
        self.version = 0
        """The number of polls."""
        self.wanted_at = 0.0
        self.used_at = 0.0
        """The loop's time when a page or the sampler last used it."""
        self._polling = asyncio.Lock()

    def want(self) -> None:
        """Keep polling; to be repeated as long as a page is open."""
        self.wanted_at = self.used_at = _now()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def sample(self) -> None:
        """Poll once, unless a page makes it poll anyway."""
        self.used_at = _now()
        if self._task is None or self._task.done():
            await self._poll()

    def hurry(self) -> None:
        """Poll now: something was changed."""
        self._hurry.set()

    async def fresh(self, patience: float) -> T | None:
        """Return a current answer, waiting up to `patience` seconds for one.

        If it takes longer, return the last one, which may be None.
        """
        rested = _now() - self.wanted_at >= WANTED_FOR
        self.want()
        if self.version == 0 or rested:
            self.hurry()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), patience)
        return self.value

    async def close(self) -> None:
        """Stop polling."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        while _now() - self.wanted_at < WANTED_FOR:
            self._hurry.clear()
            began = _now()
            await self._poll()
            pause = max(self._interval, self._rests * (_now() - began))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), pause)

    async def _poll(self) -> None:
        async with self._polling:  # never two queries at once
            await self._poll_alone()

    async def _poll_alone(self) -> None:
        try:
            self.value = await self._query()
            self.problem = None
            self.at = time.time()
        except MQError as error:
            self.problem = str(error)
        except Exception as error:
            logger.exception("poll failed")
            self.problem = f"internal error of the dashboard: {type(error).__name__}"
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()


class Pollers:
    """All pollers, by what they query."""

    def __init__(self) -> None:
        self._pollers: dict[tuple[str, ...], Poller[object]] = {}

    def of(
        self,
        key: tuple[str, ...],
        query: Callable[[], Awaitable[T]],
        interval: float = INTERVAL,
        rests: float = RESTS,
    ) -> Poller[T]:
        """Return the poller of a key, made if there is none; those long unwanted are dropped."""
        poller = self._pollers.get(key)
        if poller is None:
            self._drop_forgotten()
            poller = self._pollers[key] = cast("Poller[object]", Poller(query, interval, rests))
            poller.used_at = _now()
        return cast("Poller[T]", poller)

    def hurry(self) -> None:
        """Make all poll now."""
        for poller in self._pollers.values():
            poller.hurry()

    async def close(self) -> None:
        """Stop polling."""
        await asyncio.gather(*(poller.close() for poller in self._pollers.values()))

    def _drop_forgotten(self) -> None:
        limit = _now() - FORGOTTEN_AFTER
        for key in [key for key, poller in self._pollers.items() if poller.used_at < limit]:
            del self._pollers[key]


def _now() -> float:
    return asyncio.get_running_loop().time()
