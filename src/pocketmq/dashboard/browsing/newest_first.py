"""Messages of many queues in one order, newest first. Pure: says what to read, is given it.

Queues can be read forward only, and each is in order by itself. So the end of every queue is read
in short parts, and a message may be shown as soon as every other queue has one to compare it with,
or nothing left: without reading more than a part of each queue.
"""

from collections.abc import Mapping
from heapq import heappop, heappush

import msgspec

from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage

Span = tuple[int, int]
"""Offsets of a queue: the first, and the one after the last."""
Position = dict[MessageQueue, Span]
"""What has not been shown yet, of each queue."""


class QueuePart(msgspec.Struct, frozen=True):
    """Offsets of a queue to read, from `first` up to but not including `end`."""

    queue: MessageQueue
    first: int
    end: int


class NewestFirst:
    """Merges queues from their ends. Give it what `wanted` lists, then `take`."""

    def __init__(self, position: Mapping[MessageQueue, Span], part: int) -> None:
        self._part = part
        self._left = {queue: span for queue, span in position.items() if span[1] > span[0]}
        self._unread = {queue: end for queue, (_, end) in self._left.items()}
        self._held: dict[MessageQueue, list[ReceivedMessage]] = {}
        self._hungry = dict.fromkeys(self._left)
        self._queues = list(self._left)
        self._numbers = {queue: number for number, queue in enumerate(self._queues)}
        self._heads: list[tuple[int, int]] = []
        """A heap: negative time of the newest message held of a queue, number of the queue."""

    def wanted(self) -> list[QueuePart]:
        """Return what has to be read before more can be taken."""
        return [
            QueuePart(queue, max(self._left[queue][0], end - self._part), end)
            for queue in self._hungry
            for end in (self._unread[queue],)
        ]

    def put(self, part: QueuePart, messages: list[ReceivedMessage]) -> None:
        """Add the messages of a part, in the order of the queue; there may be gaps."""
        queue = part.queue
        self._held[queue] = [
            each for each in messages if part.first <= each.queue_offset < part.end
        ]
        self._unread[queue] = part.first
        self._expose(queue)

    def drop(self, queue: MessageQueue) -> None:
        """Leave a queue out that could not be read."""
        self._left.pop(queue, None)
        self._hungry.pop(queue, None)

    def take(self) -> ReceivedMessage | None:
        """Remove and return the newest message; None if there is none, or something is wanted."""
        if self._hungry or not self._heads:
            return None
        queue = self._queues[heappop(self._heads)[1]]
        newest = self._held[queue].pop()
        self._left[queue] = self._left[queue][0], newest.queue_offset
        self._expose(queue)
        return newest

    def rest(self) -> Position:
        """Return what has not been taken, of the queues that have any."""
        found = {}
        for queue, (first, end) in self._left.items():
            last = end if self._held.get(queue) else min(end, self._unread[queue])
            if last > first:
                found[queue] = (first, last)
        return found

    def _expose(self, queue: MessageQueue) -> None:
        """Offer the newest message that is held of a queue, or ask for more of it."""
        self._hungry.pop(queue, None)
        if self._held[queue]:
            newest = self._held[queue][-1].store_timestamp_ms
            heappush(self._heads, (-newest, self._numbers[queue]))
        elif self._unread[queue] > self._left[queue][0]:
            self._hungry[queue] = None
