"""The start and the end of a client: each happens once, whoever calls, when, and how often.

Owns what callers see when several start at once, when the end comes in the midst of a start, and
when a caller is cancelled. What starting and ending is, the clients know. Belongs to one loop.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from pocketmq.errors import ClientClosed

Work = Callable[[], Coroutine[Any, Any, None]]


class Lifetime:
    """One client's."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._turn = asyncio.Lock()
        self._starting: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self.started = False

    @property
    def ended(self) -> bool:
        """Whether the end has begun."""
        return self._ending is not None

    async def start(self, work: Work) -> None:
        """Start, unless that has been done; whoever calls meanwhile waits for it.

        Raises what `work` does, which leaves nothing behind then and may be tried again, and
        `ClientClosed` if the end has come, also in the midst of it.
        """
        async with self._turn:
            if self.ended:
                raise ClientClosed(self._name)
            if self.started:
                return
            starting = asyncio.get_running_loop().create_task(work(), name=f"start {self._name}")
            self._starting = starting
            try:
                await asyncio.wait({starting})
            except asyncio.CancelledError:
                starting.cancel()
                await asyncio.wait({starting})
                starting.cancelled() or starting.exception()  # nobody else will ask
                raise
            finally:
                self._starting = None
            if starting.cancelled():
                raise ClientClosed(self._name)
            starting.result()
            if self.ended:
                raise ClientClosed(self._name)
            self.started = True

    async def end(self, work: Work) -> None:
        """End, unless that has been done or nothing was started; a start under way is given up.

        Cancelled, it goes on in the background.
        """
        if self._ending is None:
            if not self.started and self._starting is None:
                return
            self._ending = asyncio.get_running_loop().create_task(
                self._end(work), name=f"close {self._name}"
            )
        await asyncio.shield(self._ending)

    async def _end(self, work: Work) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        await work()
