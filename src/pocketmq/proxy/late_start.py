"""A part that is started for the first client that needs it, once for all that wait."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger("pocketmq.proxy")

_PATIENCE = 30.0
"""Seconds that a client waits."""


class LateStart:
    """The start of one part. Belongs to one event loop."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._start = start
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    async def done(self) -> bool:
        """Start it, unless that was done, and wait; False if it failed or takes too long.

        A failure is logged once for all that wait, and the next caller tries again.
        """
        task = self._task
        if task is None:
            if self._closed:
                return False
            task = self._task = asyncio.create_task(self._start())
            task.add_done_callback(self._ended)
        if not task.done():
            await asyncio.wait([task], timeout=_PATIENCE)
        return task.done() and not task.cancelled() and task.exception() is None

    async def close(self) -> None:
        """Begin no more starts, and wait for one in progress, which the caller then undoes."""
        self._closed = True
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None or task.cancelled():
            self._task = None
        if error is not None:
            logger.error(
                'gRPC service failed to start: error="%s: %s"; '
                "closing the connections that wait for it; the next one starts it again",
                type(error).__name__, error,
            )  # fmt: skip
