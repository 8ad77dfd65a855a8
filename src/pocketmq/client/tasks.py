"""Background tasks of one owner: every failure is logged, and no task outlives the owner.

Belongs to one event loop. Times are the loop's.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from pocketmq.client.lifetime import fork_count
from pocketmq.errors import ClientForked

logger = logging.getLogger("pocketmq.client")

T = TypeVar("T")

CANCEL_WAIT = 3.0
"""Seconds for cancelled tasks to clean up. Ours need none; an application's may never end."""


class Tasks:
    """Holds tasks until they end; `stop` cancels them all."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._running: set[asyncio.Task[Any]] = set()
        self._stopped = False
        self._generation = fork_count()

    def __len__(self) -> int:
        return len(self._running)

    def spawn(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run a coroutine in the background; its error is logged, and raised where it is awaited.

        After `stop` it is not started: the task is returned cancelled. Raises `ClientForked` in a
        fork of the process the loop runs in.
        """
        if fork_count() != self._generation:
            work.close()
            raise ClientForked(self._owner)
        task = asyncio.get_running_loop().create_task(work, name=f"{self._owner}: {name}")
        if self._stopped:
            task.cancel()
            return task
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def every(
        self,
        interval: float,
        work: Callable[[], Awaitable[object]],
        name: str,
        *,
        first_after: float,
    ) -> None:
        """Call `work` repeatedly, at a fixed rate; a call that takes long delays the next.

        A failure is logged and does not end the repetition.
        """
        self.spawn(self._repeat(interval, work, name, first_after), name)

    async def stop(self) -> None:
        """Cancel all tasks but the caller's own and wait for their end, within a limit."""
        self._stopped = True
        this = asyncio.current_task()
        others = {task for task in self._running if task is not this}
        for task in others:
            task.cancel()
        if others:
            _, late = await asyncio.wait(others, timeout=CANCEL_WAIT)
            for task in late:
                logger.warning(
                    "task %s did not end within %g s of its cancellation",
                    task.get_name(),
                    CANCEL_WAIT,
                )

    async def _repeat(
        self, interval: float, work: Callable[[], Awaitable[object]], name: str, first_after: float
    ) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + first_after
        while True:
            await asyncio.sleep(max(0.0, due - loop.time()))
            due = loop.time() + interval
            try:
                await work()
            except Exception:
                logger.exception("%s: %s failed; retrying in %g s", self._owner, name, interval)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            logger.error("%s failed", task.get_name(), exc_info=error)
