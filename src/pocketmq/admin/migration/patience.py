"""Servers that are away for a while: asked again, with pauses, until they are back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pocketmq.admin.migration.side import Side
from pocketmq.errors import MQError, NoPermission, TopicNotFound

T = TypeVar("T")
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


class Patience:
    """How long two clusters are waited for. Belongs to one event loop."""

    def __init__(self, sides: tuple[Side, Side], seconds: float, stop: asyncio.Event) -> None:
        self._sides = sides
        self._seconds = seconds
        self._stop = stop

    async def until_done(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something until it works.

        Raises what cannot become better, and the last error when it has failed for too long or a
        stop was asked for meanwhile.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                return await work()
            except MQError as error:
                if not error.retryable or isinstance(error, NoPermission | TopicNotFound):
                    raise
                if loop.time() + pause > deadline or self._stop.is_set():
                    raise
                if error.refresh_route:
                    await self._find_brokers()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _find_brokers(self) -> None:
        for side in self._sides:
            try:
                await side.find_brokers()
            except MQError:
                continue  # those that were known are asked again
