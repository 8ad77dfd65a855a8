"""Receiving: which broker is asked when, for how long, and what becomes of a pop nobody awaits.

One topic on one broker is popped and the pop held there. Several are looked at one after the other
and then waited for side by side without taking anything, so that a message is hidden only when its
receiver is ready. A receiver that is cancelled loses nothing: what its pop brings is for the next.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import msgspec

from pocketmq.client.pop.popped import Popped, handle_of
from pocketmq.client.pop.requests import PopRequests
from pocketmq.client.pop.sources import Source
from pocketmq.client.tasks import Tasks
from pocketmq.errors import MQError, RequestNotSupported
from pocketmq.protocol.filter import tag_filter
from pocketmq.protocol.pop_handles import PopHandle
from pocketmq.protocol.received import ReceivedMessage

logger = logging.getLogger("pocketmq.client")

LONGEST_WAIT = 20.0
"""A longer wait becomes several requests, so that a dead connection is found."""
_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


class Wanted(msgspec.Struct, frozen=True):
    """What one receive asks for."""

    most: int
    invisible: float


class Receiving:
    """The pops of one consumer. Belongs to one event loop."""

    def __init__(self, requests: PopRequests, tasks: Tasks, new_attempt: Callable[[], str] | None):
        self._requests = requests
        self._tasks = tasks
        self._new_attempt = new_attempt  # set for ordered consumers
        self._attempts: dict[tuple[str, str], str] = {}
        self._left: deque[tuple[Source, Popped]] = deque()
        self._can_wait = True

    def left(self, name: str | None, most: int) -> list[ReceivedMessage]:
        """Give what a cancelled receiver left behind, if it is still hidden from others."""
        now = asyncio.get_running_loop().time()
        for _ in range(len(self._left)):
            source, popped = self._left.popleft()
            if popped.hidden_until <= now:
                continue
            if name not in (None, source.name):
                self._left.append((source, popped))
                continue
            if len(popped.messages) > most:
                rest = Popped(popped.messages[most:], popped.hidden_until)
                self._left.appendleft((source, rest))
            return popped.messages[:most]
        return []

    def give_up(self) -> list[ReceivedMessage]:
        """Give all that was left behind and is still hidden, to be given back."""
        now = asyncio.get_running_loop().time()
        left, self._left = self._left, deque()
        return [
            message
            for _, popped in left
            if popped.hidden_until > now
            for message in popped.messages
        ]

    async def look(self, sources: list[Source], wanted: Wanted) -> list[ReceivedMessage]:
        """Take what the first source has that has any, without waiting.

        Raises the last source's error if every one failed.
        """
        failure: MQError | None = None
        failed = 0
        for source in sources:
            try:
                messages = await self.take(source, wanted, 0.0)
            except RequestNotSupported:
                raise
            except MQError as error:
                logger.debug("pop of %s from %s: %s", source.name, source.broker, error)
                failure = error
                failed += 1
                continue
            if messages:
                return messages
        if failure is not None and failed == len(sources):
            raise failure
        return []

    async def take(self, source: Source, wanted: Wanted, wait: float) -> list[ReceivedMessage]:
        """Pop from one source; a cancelled caller leaves what comes for the next."""
        task = self._tasks.spawn(self._pop(source, wanted, wait), f"pop {source.name}")
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.add_done_callback(lambda done: self._keep(source, done))
            raise
        outcome = task.result()
        if isinstance(outcome, MQError):
            raise outcome
        return outcome.messages

    async def wait_for_any(self, sources: list[Source], wait: float) -> bool:
        """Wait until some source has something to take; False if it cannot be known or none has."""
        if not self._can_wait:
            await asyncio.sleep(min(_PAUSE * 4, wait))
            return False
        tasks = [asyncio.ensure_future(self._has_any(source, wait)) for source in sources]
        pending = set(tasks)
        try:
            while pending:
                done, pending = await asyncio.wait(
                    pending, return_when=asyncio.FIRST_COMPLETED, timeout=wait + 1.0
                )
                if not done or any(task.result() for task in done):
                    return bool(done)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        return False

    async def _has_any(self, source: Source, wait: float) -> bool:
        try:
            return await self._requests.wait_for_any(source.broker, source.subscription, wait)
        except RequestNotSupported:
            self._can_wait = False
        except MQError as error:
            logger.debug("waiting for %s at %s: %s", source.name, source.broker, error)
            await asyncio.sleep(min(_LONGEST_PAUSE, wait))
        return False

    async def _pop(self, source: Source, wanted: Wanted, wait: float) -> Popped | MQError:
        """Give what came, or the error: one raised here would be logged though it is awaited."""
        place = (source.subscription.topic, source.broker)
        attempt: str | None = None
        if self._new_attempt is not None:
            # With the same attempt the broker gives again what it gave in a lost answer.
            attempt = self._attempts.setdefault(place, self._new_attempt())
        try:
            popped = await self._requests.pop(
                source.broker,
                source.subscription,
                source.name,
                most=wanted.most,
                invisible=wanted.invisible,
                wait=wait,
                attempt=attempt,
            )
        except MQError as error:
            return error
        self._attempts.pop(place, None)
        return Popped(self._matching(source, popped.messages), popped.hidden_until)

    def _matching(self, source: Source, messages: list[ReceivedMessage]) -> list[ReceivedMessage]:
        """Leave out messages of other tags, which share a hash with ours; nobody needs them."""
        chosen = tag_filter(source.subscription)
        if chosen.tags is None:
            return messages
        others = [each for each in messages if not chosen.matches_tag(each.tag)]
        if not others:
            return messages
        handles = [(source.subscription.topic, handle_of(each)) for each in others]
        self._tasks.spawn(self._ack_quietly(source.broker, handles), "ack other tags")
        return [each for each in messages if chosen.matches_tag(each.tag)]

    async def _ack_quietly(self, broker: str, handles: list[tuple[str, PopHandle]]) -> None:
        try:
            await self._requests.ack(broker, handles)
        except MQError as error:
            logger.debug("messages of other tags are not acknowledged: %s", error)

    def _keep(self, source: Source, done: asyncio.Task[Popped | MQError]) -> None:
        if done.cancelled():
            return
        outcome = done.result()
        if isinstance(outcome, Popped) and outcome.messages:
            self._left.append((source, outcome))


class Pause:
    """How long to wait when a broker said there is something and there was not; grows."""

    def __init__(self) -> None:
        self._next = _PAUSE

    async def wait(self, left: float) -> None:
        """Wait a little, at most `left` seconds."""
        await asyncio.sleep(min(self._next, max(0.0, left)))
        self._next = min(2 * self._next, _LONGEST_PAUSE)
