"""Receiving: which broker is asked, when and for how long; what becomes of pops without a caller.

One topic on one broker is popped for as long as the caller waits. Several are asked one after
the other; if none has anything, a pop is held at each of them, and the first that brings
something ends the wait. A receiver that is cancelled loses nothing: what its pop brings is for
the next.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, TypeVar

from pocketmq.balance.consumer.pulling import BROKER_SUSPEND
from pocketmq.client.pop.requests import Asking, ReceiveSpec
from pocketmq.client.pop.sources import Kept, KeptMessages, Source, SourceKey, Sources
from pocketmq.client.tasks import Tasks
from pocketmq.errors import ClientClosed, MQError, RequestNotSupported
from pocketmq.model import Subscription
from pocketmq.protocol import ReceivedMessage

HOLD = BROKER_SUSPEND
"""Seconds for which a broker holds a pop, the same as for push consumers whatever the caller waits:
Java's brokers serve the pop first that ends first, so another time would starve one or the other.
"""
_EARLY = 0.2
_FAILED = 1.0
"""Seconds before a source is asked again that did not hold a pop, or that failed."""
_PAUSE = 0.05
_LONGEST_PAUSE = 1.0
"""Seconds before one source alone is asked again that did not wait, at first and at most."""

T = TypeVar("T", Kept, Kept | MQError)


class Holds:
    """The held pops of one consumer of several sources, at most one at each source.

    Brokers serve held pops in turn, so a consumer that holds one everywhere gets its share of every
    broker. A held pop cannot be called back: it outlives the receive that began it, serves the next
    one too, and what it brings meanwhile is kept. Belongs to one event loop.
    """

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


class PopReceives:
    """The receives of one consumer. Belongs to one event loop."""

    def __init__(
        self,
        owner: str,
        asking: Asking,
        tasks: Tasks,
        sources: Sources,
        subscribed: Callable[[], list[tuple[str, Subscription]]],
    ) -> None:
        self._owner = owner
        self.asking = asking
        self._tasks = tasks
        self._sources = sources
        self._subscribed = subscribed
        self.kept = KeptMessages()
        self.holds = Holds(asking, tasks, self.kept)

    async def receive(
        self, subscribed: list[tuple[str, Subscription]], wanted: ReceiveSpec, patience: float
    ) -> list[ReceivedMessage]:
        """Return messages of these topics; none if none comes within `patience` seconds."""
        clock, names = asyncio.get_running_loop().time, [name for name, _ in subscribed]
        deadline = clock() + patience
        pause, first = GrowingPause(), True
        while True:
            changed = self.holds.changed  # seen before all else, so that no change is missed
            messages = await self._take_kept(names, wanted)
            if messages or (not first and clock() >= deadline):
                return messages
            if self.holds.closed:
                raise ClientClosed(self._owner)
            places = await self._sources.in_turn(subscribed)
            if len(places) == 1 and not self.holds.has(places[0]):
                messages = await self._from_one(places[0], wanted, deadline, pause)
            else:
                messages = await self._look_around(places, wanted, deadline) if first else []
                if not messages and clock() < deadline:
                    await self._wait_for_any(places, wanted, deadline, changed)
            if messages:
                return messages
            first = False

    async def _from_one(
        self, source: Source, wanted: ReceiveSpec, deadline: float, pause: "GrowingPause"
    ) -> list[ReceivedMessage]:
        """Pop for as long as the caller waits."""
        clock = asyncio.get_running_loop().time
        began = clock()
        wait = min(HOLD, max(0.0, deadline - began))
        outcome = await self._take(source, wanted, wait)
        if isinstance(outcome, MQError):
            raise outcome
        if not outcome.messages and clock() - began < wait / 2:
            await pause.wait(deadline - clock())  # the broker did not wait, as it was asked to
        return outcome.messages

    async def _look_around(
        self, sources: list[Source], wanted: ReceiveSpec, deadline: float
    ) -> list[ReceivedMessage]:
        """Take what is there already.

        No extra pop is needed while one is held, unless the caller does not wait at all: the
        broker answers the extra one after the held one, whose messages are kept by then.
        """
        late = asyncio.get_running_loop().time() >= deadline
        free = [source for source in sources if late or not self.holds.has(source)]
        if len(free) == 1 and not late:
            return []  # the pop that is held there next finds out as well
        messages = await self._look(free, wanted, hold=not late)
        if not messages:
            self._check(sources)
        return messages

    async def _wait_for_any(
        self, sources: list[Source], wanted: ReceiveSpec, deadline: float, changed: asyncio.Event
    ) -> None:
        """Let each source hold a pop, and wait until one of them ends."""
        for source in self.holds.due(sources):
            self.holds.hold(source, wanted)
        await self.holds.wait(changed, sources, deadline)
        self._check(sources)

    async def _look(
        self, sources: list[Source], wanted: ReceiveSpec, *, hold: bool
    ) -> list[ReceivedMessage]:
        """Take what the first source has that has any; let those before it hold pops."""
        for source in sources:
            outcome = await self._take(source, wanted, 0.0)
            if isinstance(outcome, RequestNotSupported):
                raise outcome
            if isinstance(outcome, MQError):
                continue
            if outcome.messages:
                return outcome.messages
            if hold and not self.holds.has(source):  # other receivers hold pops, too
                self.holds.hold(source, wanted)
        return []

    def _check(self, sources: list[Source]) -> None:
        """Raise the last source's error if none can be asked, or if one does not support pops."""
        unheld = [source.key for source in sources if not self.holds.has(source)]
        failures = [self.asking.failures.get(place) for place in unheld]
        failed = [error for error in failures if error is not None]
        for error in failed:
            if isinstance(error, RequestNotSupported):
                raise error
        if failed and len(failed) == len(sources) and not len(self.kept):
            raise failed[-1]

    async def _take_kept(self, names: list[str], wanted: ReceiveSpec) -> list[ReceivedMessage]:
        """Return messages that earlier pops brought, hidden for as long as is wanted."""
        if not len(self.kept):
            return []
        self.holds.give_back(self.kept.take_unsubscribed(self._subscribed()))
        clock = asyncio.get_running_loop().time
        while (kept := self.kept.take(names, wanted.most, clock())) is not None:
            if kept.lasts(wanted.invisible, clock()):
                return kept.messages
            task = self._tasks.spawn(self.asking.renew(kept, wanted.invisible), "renew messages")
            renewed = await self._awaited(task)
            if renewed.messages:
                return renewed.messages
        return []

    async def _take(self, source: Source, wanted: ReceiveSpec, wait: float) -> Kept | MQError:
        """Pop from one source."""
        pop = self.asking.pop(source, wanted, wait)
        return await self._awaited(self._tasks.spawn(pop, f"pop {source.name}"))

    async def _awaited(self, task: asyncio.Task[T]) -> T:
        """Await a task; if the caller is cancelled, keep the result for the next caller."""
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            this = asyncio.current_task()
            if task.cancelled() and not (this is not None and this.cancelling()):
                raise ClientClosed(self._owner) from None  # the session has ended
            task.add_done_callback(self._keep)
            raise

    def _keep(self, done: asyncio.Task[Kept] | asyncio.Task[Kept | MQError]) -> None:
        outcome = None if done.cancelled() else done.result()
        if isinstance(outcome, Kept):
            self.holds.keep(outcome)
            self.holds.wake()


class GrowingPause:
    """A growing pause after a broker did not hold a pop as it was asked to."""

    def __init__(self) -> None:
        self._next = _PAUSE

    async def wait(self, left: float) -> None:
        """Wait a little, at most `left` seconds."""
        await asyncio.sleep(min(self._next, max(0.0, left)))
        self._next = min(2 * self._next, _LONGEST_PAUSE)
