"""Which timed messages are done: delivered or recalled, as marks and as the store has them.

Messages are delivered in order of their due times, and those of one time in order of arrival. So a
mark says what is done: everything up to a due time and an offset. If the clock is set back,
messages come that are due before the mark. Then the mark holds for older messages alone, those
before an offset, and a new mark begins; the older one is dropped when the new one passes it.
"""

import heapq
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pocketmq.broker.core.log_origins import copies_since, timer_of_origin
from pocketmq.broker.timers.wheel import Entry
from pocketmq.protocol import RecordView
from pocketmq.store import MessageStore, QueueIndex

NOTHING: Entry = (0, -1)


class OlderMark(NamedTuple):
    """A mark that holds for the messages before an offset."""

    before: int
    done: Entry


class TimerProgress:
    """What is done, of one broker's timed messages."""

    def __init__(
        self, done: Entry = NOTHING, scope: int = 0, older: Iterable[OlderMark] = ()
    ) -> None:
        self.done = done
        self.scope = scope
        """Messages from this offset on came after the mark was set."""
        self.older = list(older)
        """Newest last: offsets rise from one to the next, due times fall."""
        self.ahead: dict[int, int] = {}
        """Messages that were delivered although others that are due before them were not."""

    def all_wait(self, first: int, tags: list[int]) -> bool:
        """Return whether all of these messages are certainly still to be delivered."""
        clear = not self.older or first >= self.older[-1].before
        return clear and not self.ahead and min(tags) > self.done[0]

    def is_done(self, entry: Entry) -> bool:
        """Return whether a message has been delivered."""
        offset = entry[1]
        if entry <= self.done or offset in self.ahead:
            return True
        return any(offset < mark.before and entry <= mark.done for mark in self.older)

    def came(self, entry: Entry) -> bool:
        """Record a new message; return whether it is due before the mark."""
        if entry[1] < self.scope or entry > self.done:
            return False
        self.older.append(OlderMark(self.scope, self.done))
        self.done = NOTHING
        return True

    def reached(self, done: Entry, scope: int) -> None:
        """Move the mark: of the messages before `scope` all up to `done` have been delivered."""
        self.done, self.scope = done, scope
        self.older = [mark for mark in self.older if mark.done > done]
        if self.ahead:
            self.ahead = {offset: due for offset, due in self.ahead.items() if (due, offset) > done}


class Recalls:
    """Keys of messages that must not be delivered."""

    def __init__(self) -> None:
        self._keys: dict[int, set[bytes]] = {}
        self._moments: list[int] = []

    def add(self, due_ms: int, key: bytes) -> None:
        """Record the key of a message that must not be delivered when it is due."""
        if due_ms not in self._keys:
            heapq.heappush(self._moments, due_ms)
            self._keys[due_ms] = set()
        self._keys[due_ms].add(key)

    def get(self, due_ms: int) -> AbstractSet[bytes] | None:
        """Return the recalled keys of those due at a time."""
        return self._keys.get(due_ms)

    def forget(self, done_ms: int) -> None:
        """Forget what would have been due up to a time."""
        while self._moments and self._moments[0] <= done_ms:
            del self._keys[heapq.heappop(self._moments)]


CHUNK = 8192
"""Index entries that are read at once."""


def records_at(store: MessageStore, queue: QueueIndex, offsets: list[int]) -> Iterator[RecordView]:
    """Yield the messages at some offsets of a queue, in order, except lost ones."""
    for first, count in _stretches(sorted(offsets)):
        offset, end = first, first + count
        while offset < end:
            read = store.read(queue, offset, end - offset, 1 << 30)
            for piece in read.pieces:
                yield RecordView(piece, 0)
            offset = max(read.next_offset, offset + 1)


def delivered_since(store: MessageStore, position: int) -> set[int]:
    """Return the offsets of messages whose copies lie behind a position of the log."""
    delivered: set[int] = set()
    for copy in copies_since(store, position):
        origin = timer_of_origin(copy.origin)
        record = None if origin is None else store.record_at(origin)
        if record is not None:
            delivered.add(RecordView(record, 0).queue_offset)
    return delivered


def first_due_from(queue: QueueIndex, offset: int, moment_ms: int) -> int | None:
    """Return the first message, or recall of one, that is due at a time or after it."""
    while offset < queue.next_offset:
        tags = queue.tags(offset, CHUNK)
        for number, tag in enumerate(tags, offset):
            if abs(tag) >= moment_ms:
                return number
        offset += len(tags)
    return None


def _stretches(offsets: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the runs of consecutive offsets: the first of each, and how many."""
    start = 0
    for at in range(1, len(offsets) + 1):
        if at == len(offsets) or offsets[at] != offsets[at - 1] + 1:
            yield offsets[start], at - start
            start = at
