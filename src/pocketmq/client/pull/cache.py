"""Queues of a pull consumer, and pulled messages that wait to be polled, batch by batch.

Belongs to one event loop; of a batch that `PullConsumer.begun` has handed out, the thread that
iterates may count `at` up. Taking never waits, so that a cancelled poll has taken nothing.
"""

import asyncio
from collections import deque

import msgspec

from pocketmq.balance.consumer.lite_pull import NONE, AssignedState
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.model import MessageQueue, MessageRequestMode
from pocketmq.protocol import ReceivedMessage


class PullQueue(HeldQueue):
    """One stay of a queue with a pull consumer: assigned again, the queue gets a new object."""

    __slots__ = ("assigned", "before_last", "position")

    def __init__(
        self,
        queue: MessageQueue,
        topic: str,
        next_offset: int,
        now: float,
        mode: MessageRequestMode = MessageRequestMode.PULL,
    ) -> None:
        super().__init__(queue, topic, next_offset, now, mode)
        self.position = AssignedState()
        """Where to pull, seek and commit next; takes the place of `next_offset` and `paused`."""
        self.before_last = NONE
        """The offset to commit as it was before the last poll of this queue."""
        self.assigned = False
        """Whether it is pulled: a queue that a rebalance takes is so from its end on."""

    @property
    def given(self) -> bool:
        """Whether STICKY gives it away, fenced or not: it is not sought or reset any more."""
        return self.gate is not None and self.gate.limit is not None

    def change(self, **fields: int | bool) -> None:
        """Change the position."""
        self.position = msgspec.structs.replace(self.position, **fields)


class PulledBatch:
    """Messages of one pull: those before `at` are taken, those before `settled` count as done."""

    __slots__ = ("assigned", "at", "messages", "settled")

    def __init__(self, assigned: PullQueue, messages: list[ReceivedMessage]) -> None:
        self.assigned = assigned
        self.messages = messages
        self.at = 0
        self.settled = 0

    def settle(self, now: float) -> None:
        """Take messages that were taken out of the queue's cache, and move its offset to commit."""
        some = self.messages[self.settled : self.at]
        self.settled = self.at
        assigned = self.assigned
        offset = assigned.process.remove(some, now)
        if offset >= 0:
            assigned.before_last = assigned.position.consume_offset
            assigned.change(consume_offset=offset)
        assigned.capacity_freed()


class PollCache:
    """Batches ahead of the polls of one consumer, in the order they came, over all queues."""

    def __init__(self) -> None:
        self._batches: deque[PulledBatch] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self.last: PullQueue | None = None
        """The queue that was polled last: its last batch may still be worked on."""
        self._done: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return len(self._batches)

    def put(self, batch: PulledBatch) -> None:
        """Add a batch and wake one poll that waits."""
        self._batches.append(batch)
        self._wake()

    def close(self) -> None:
        """Discard everything, and end all polls that wait, and waits for another poll."""
        self._closed = True
        self._batches.clear()
        self._report_done()
        while self._waiting:
            self._wake()

    def drop(self, assigned: PullQueue) -> None:
        """Discard the batches of one queue."""
        self._batches = deque(each for each in self._batches if each.assigned is not assigned)

    def take(self) -> PulledBatch | None:
        """Take the next batch of a queue that is still assigned, or what is left of it."""
        batch = self.first()
        if batch is not None:
            self._batches.remove(batch)  # nearly always the first
            self.last = batch.assigned
        return batch

    def polled(self) -> None:
        """Note that the application asks for more: what it took before is done."""
        self.last = None
        if self._done:
            self._report_done()

    def _report_done(self) -> None:
        waiting, self._done = self._done, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def until_polled(self, assigned: PullQueue, timeout: float) -> None:  # noqa: ASYNC109 - not an error
        """Wait until what was taken last of a queue is done, but not longer than `timeout`."""
        begun = any(each.at and each.assigned is assigned for each in self._batches)
        if begun or self.last is assigned:
            future = asyncio.get_running_loop().create_future()
            self._done.append(future)
            await asyncio.wait({future}, timeout=timeout)

    def wake(self) -> None:
        """Let a poll check again: batches may be taken that could not be before."""
        if self.first() is not None:
            self._wake()

    def settle(self, now: float) -> None:
        """Count as done what was taken of a batch one message after another."""
        batch = self.first()  # only the first can be partly taken
        if batch is not None and batch.at > batch.settled:
            batch.settle(now)

    def first(self) -> PulledBatch | None:
        """Return the next batch of a queue that is still assigned, without taking it."""
        batches = self._batches
        while batches and not batches[0].assigned.mine:
            gone = batches.popleft()
            if gone.at > gone.settled:  # STICKY gives the queue away: what was taken is done
                gone.settle(asyncio.get_running_loop().time())
        if not batches or batches[0].assigned.may_start:
            return batches[0] if batches else None
        # A fenced queue's batches wait until it is known whose they are.
        return next((each for each in batches if each.assigned.may_start), None)

    async def wait(self, timeout: float | None) -> None:  # noqa: ASYNC109 - not an error
        """Wait until there may be a batch to take, or the cache is closed."""
        if self.first() is not None or self._closed:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await asyncio.wait({waiter}, timeout=timeout)
        except asyncio.CancelledError:
            if waiter.done():  # it was woken for a batch that is left: wake another poll
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
