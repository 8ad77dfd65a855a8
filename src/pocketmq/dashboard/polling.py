"""Looking at a cluster again and again, once for all who watch.

A `Watch` asks one question as long as somebody wants to know, and rests when nobody does. All
browsers share its answer. It knows neither pages nor what is asked.
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
"""Seconds between two looks."""
RESTS = 4.0
"""A look that takes long is followed by a pause so many times as long: a large cluster has other
things to do."""
WANTED_FOR = 10.0
"""Seconds without a viewer after which nobody looks any more."""
FORGOTTEN_AFTER = 60.0
"""Seconds without a viewer after which an answer is thrown away."""


class Poller(Generic[T]):
    """One question, its last answer, and when that was. Belongs to the loop it was made on."""

    def __init__(
        self,
        look: Callable[[], Awaitable[T]],
        interval: float = INTERVAL,
        rests: float = RESTS,
    ) -> None:
        self._look = look
        self._interval = interval
        self._rests = rests
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._hurry = asyncio.Event()
        self.value: T | None = None
        """The last answer; None if there never was one."""
        self.problem: str | None = None
        """Why there is no newer answer, if the last look failed."""
        self.at = 0.0
        """When the answer was given, in seconds since 1970."""
        self.version = 0
        """Counts looks."""
        self.wanted_at = 0.0

    def want(self) -> None:
        """Say that somebody watches; to be repeated as long as that is so."""
        self.wanted_at = _now()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._go_on())

    def hurry(self) -> None:
        """Look again now: something was changed."""
        self._hurry.set()

    async def fresh(self, patience: float) -> T | None:
        """Give an answer of these seconds, or wait a little for one.

        If it takes longer it is the last one there was, which may be None.
        """
        rested = _now() - self.wanted_at >= WANTED_FOR
        self.want()
        if self.version == 0 or rested:
            self.hurry()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), patience)
        return self.value

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _go_on(self) -> None:
        while _now() - self.wanted_at < WANTED_FOR:
            self._hurry.clear()
            began = _now()
            await self._look_once()
            pause = max(self._interval, self._rests * (_now() - began))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), pause)

    async def _look_once(self) -> None:
        try:
            self.value = await self._look()
            self.problem = None
            self.at = time.time()
        except MQError as error:
            self.problem = str(error)
        except Exception as error:
            logger.exception("a look at the cluster failed")
            self.problem = f"the dashboard failed: {type(error).__name__}"
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()


class Pollers:
    """All watches, by what they look at."""

    def __init__(self) -> None:
        self._watches: dict[tuple[str, ...], Poller[object]] = {}

    def of(
        self,
        key: tuple[str, ...],
        look: Callable[[], Awaitable[T]],
        interval: float = INTERVAL,
        rests: float = RESTS,
    ) -> Poller[T]:
        """Give the watch with this key, made if there is none; those long unwanted are dropped."""
        watch = self._watches.get(key)
        if watch is None:
            self._drop_forgotten()
            watch = self._watches[key] = cast("Poller[object]", Poller(look, interval, rests))
            watch.want()
        return cast("Poller[T]", watch)

    def hurry(self) -> None:
        """Have all look again now."""
        for watch in self._watches.values():
            watch.hurry()

    async def close(self) -> None:
        """Look no more."""
        await asyncio.gather(*(watch.close() for watch in self._watches.values()))

    def _drop_forgotten(self) -> None:
        limit = _now() - FORGOTTEN_AFTER
        for key in [key for key, watch in self._watches.items() if watch.wanted_at < limit]:
            del self._watches[key]


def _now() -> float:
    return asyncio.get_running_loop().time()
