"""What was pulled and waits to be polled: batches in the order they came, over all queues.

Belongs to one event loop. Taking never waits, so that a poll that is cancelled has taken nothing.
"""

import asyncio
from collections import deque

from pocketmq.client.pull.cache import PullQueue
from pocketmq.protocol.received import ReceivedMessage


class Batch:
    """Messages of one pull; those before `at` are taken, those before `settled` are noted so."""

    __slots__ = ("assigned", "at", "messages", "settled")

    def __init__(self, assigned: PullQueue, messages: list[ReceivedMessage]) -> None:
        self.assigned = assigned
        self.messages = messages
        self.at = 0
        self.settled = 0

    def settle(self, now: float) -> None:
        """Note that what was taken is out of the cache, and where a commit would stand."""
        some = self.messages[self.settled : self.at]
        self.settled = self.at
        assigned = self.assigned
        offset = assigned.held.process.remove(some, now)
        if offset >= 0:
            assigned.before_last = assigned.state.consume_offset
            assigned.change(consume_offset=offset)
        assigned.held.made_room()


class Cache:
    """The batches of one consumer, ahead of its polls."""

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self.last: PullQueue | None = None
        """The queue that was polled last: its last batch may still be worked on."""

    def __len__(self) -> int:
        return len(self._batches)

    def put(self, batch: Batch) -> None:
        """Take a batch in and wake whoever waits."""
        self._batches.append(batch)
        self._wake()

    def close(self) -> None:
        """Throw everything away; nobody waits any more."""
        self._closed = True
        self._batches.clear()
        while self._waiting:
            self._wake()

    def drop(self, assigned: PullQueue) -> None:
        """Throw away what is cached of one assignment."""
        self._batches = deque(each for each in self._batches if each.assigned is not assigned)

    def take(self) -> Batch | None:
        """Take the next batch of a queue that is still assigned, or what is left of it."""
        batch = self.first()
        if batch is not None:
            self._batches.popleft()
            self.last = batch.assigned
        return batch

    def settle(self, now: float) -> None:
        """Note what was taken of a batch one message after another."""
        batch = self.first()  # only the first can be begun
        if batch is not None and batch.at > batch.settled:
            batch.settle(now)

    def first(self) -> Batch | None:
        """Give the next batch of a queue that is still assigned, without taking it."""
        batches = self._batches
        while batches and batches[0].assigned.dropped:
            batches.popleft()
        return batches[0] if batches else None

    async def wait(self, timeout: float | None) -> None:  # noqa: ASYNC109 - not an error
        """Wait until there may be something to take, or the cache is closed."""
        if self.first() is not None or self._closed:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await asyncio.wait({waiter}, timeout=timeout)
        except asyncio.CancelledError:
            if waiter.done():  # what it was woken for is left: another may take it
                self._wake()
            raise
        finally:
            if not waiter.done():
                self._waiting.remove(waiter)

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
