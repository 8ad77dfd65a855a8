"""Pops that brokers hold for a consumer of several sources: at most one at each source.

Brokers serve held pops in turn, so a consumer that holds one everywhere gets its share of every
broker. A held pop cannot be called back: it outlives the receive that began it, serves the next one
too, and what it brings meanwhile is kept. Belongs to one event loop.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import Any

from pocketmq.balance.consumer.pulling import BROKER_SUSPEND
from pocketmq.client.pop.asking import Asking, ReceiveSpec
from pocketmq.client.pop.sources import Kept, KeptMessages, Source, SourceKey
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError

HOLD = BROKER_SUSPEND
"""Seconds for which a broker holds a pop, the same as for push consumers whatever the caller waits:
Java's brokers serve the pop first that ends first, so another time would starve one or the other.
"""
_EARLY = 0.2
_FAILED = 1.0
"""Seconds before a source is asked again that did not hold a pop, or that failed."""


class Holds:
    """The held pops of one consumer."""

    def __init__(self, asking: Asking, tasks: Tasks, kept: KeptMessages) -> None:
        self._asking = asking
        self._tasks = tasks
        self._kept = kept
        self.held: dict[SourceKey, asyncio.Task[Kept | MQError]] = {}
        """The pops that are held, by source."""
        self._not_before: dict[SourceKey, float] = {}
        self.changed = asyncio.Event()
        """Set at the next change: a held pop has ended, or messages are kept."""
        self._returning: set[asyncio.Task[None]] = set()
        self.closed = False

    def __len__(self) -> int:
        return len(self.held)

    def has(self, source: Source) -> bool:
        """Return whether a pop is held at a source."""
        return source.key in self.held

    def due(self, sources: Iterable[Source]) -> list[Source]:
        """Return the sources at which a pop is to be held now."""
        now = asyncio.get_running_loop().time()
        return [
            source
            for source in sources
            if not self.has(source) and self._not_before.get(source.key, 0.0) <= now
        ]

    def hold(self, source: Source, wanted: ReceiveSpec) -> None:
        """Let the broker hold a pop."""
        if not self.closed:
            self.adopt(source, self._asking.pop(source, wanted, HOLD))

    def adopt(self, source: Source, pop: Coroutine[Any, Any, Kept | MQError]) -> None:
        """Let a pop go on as the one that is held at a source."""
        began = asyncio.get_running_loop().time()
        task = self._tasks.spawn(pop, f"pop {source.name}")
        self.held.setdefault(source.key, task)
        task.add_done_callback(partial(self._ended, source, began))

    async def wait(
        self, changed: asyncio.Event, sources: Iterable[Source], deadline: float
    ) -> None:
        """Wait for a change, until a source is due again, or until the deadline."""
        if self.closed:
            return
        unheld = [source.key for source in sources if not self.has(source)]
        until = min([deadline, *(self._not_before.get(place, deadline) for place in unheld)])
        try:
            async with asyncio.timeout_at(until):
                await changed.wait()
        except TimeoutError:
            pass

    def wake(self) -> None:
        """Wake every receiver that waits."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def close(self) -> None:
        """Return all that is kept; what held pops bring from now on is returned as it comes."""
        self.closed = True
        self.wake()
        self.give_back(self._kept.take_all(asyncio.get_running_loop().time()))
        await self.returned()

    async def returned(self) -> None:
        """Wait until what came has been returned."""
        while self._returning:
            await asyncio.wait(self._returning)

    def give_back(self, some: list[Kept]) -> None:
        """Return messages in the background."""
        if some:
            task = self._tasks.spawn(self._asking.give_back(some), "return messages")
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    def keep(self, kept: Kept) -> None:
        """Keep messages for the next receiver, or return them if there will be none."""
        if self.closed:
            self.give_back([kept] if kept.messages else [])
        else:
            self._kept.add(kept)

    def _ended(self, source: Source, began: float, task: asyncio.Task[Kept | MQError]) -> None:
        if self.held.get(source.key) is task:
            del self.held[source.key]
        if not task.cancelled():
            outcome, now = task.result(), asyncio.get_running_loop().time()
            if isinstance(outcome, MQError):
                self._not_before[source.key] = now + _FAILED
            else:
                if not outcome.messages and now - began < HOLD / 2:
                    self._not_before[source.key] = now + _EARLY
                self.keep(outcome)
        self.wake()
