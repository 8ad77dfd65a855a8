"""Messages by offset, kept as runs: what one pull brought stays one list.

Java keeps a TreeMap. Here messages come and go by the hundred, in order and together, so adding or
removing a whole pull costs a comparison of lists and no step per message; whatever else happens to
them splits runs. A pure container without clock or lock.

A run is a window on a list of rising offsets (a `range` if they follow each other) and on the list
of their messages. Lists are never changed: windows and callers share them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

from pocketmq.native import in_core


class CachedMessage(Protocol):
    """What the cache reads of a message."""

    @property
    def queue_offset(self) -> int:
        """Its place in the queue."""
        ...

    @property
    def body_size(self) -> int:
        """The bytes of its body."""
        ...


M = TypeVar("M", bound=CachedMessage)


@in_core
def body_bytes(messages: Sequence[CachedMessage]) -> int:
    """Return the bytes of the bodies of messages."""
    return sum([message.body_size for message in messages])


@in_core
def offsets_and_bytes(messages: Sequence[CachedMessage]) -> tuple[Sequence[int], int]:
    """Return the offsets of messages, and the bytes of their bodies.

    The offsets are a `range` if they follow each other.
    """
    offsets = [message.queue_offset for message in messages]
    size = sum([message.body_size for message in messages])
    first = offsets[0] if offsets else 0
    usual = range(first, first + len(offsets))
    return usual if offsets == list(usual) else offsets, size


class _Run(Generic[M]):
    """Messages from index `start` to before `stop` of the lists."""

    __slots__ = ("first", "last", "messages", "offsets", "size", "start", "stop")

    def __init__(
        self, offsets: Sequence[int], messages: list[M], start: int, stop: int, size: int | None
    ) -> None:
        self.offsets = offsets
        self.messages = messages
        self.start = start
        self.stop = stop
        self.first = offsets[start]
        self.last = offsets[stop - 1]
        self.size = size
        """The bytes of the bodies; None if the window was changed since they were counted."""

    def index(self, offset: int) -> int:
        """Return the index of an offset, -1 if it is not in the window."""
        if self.first == offset:
            return self.start
        offsets, stop = self.offsets, self.stop
        at = bisect_left(offsets, offset, self.start, stop)
        return at if at < stop and offsets[at] == offset else -1

    def bytes_between(self, start: int, stop: int) -> int:
        """Return the bytes of the bodies in a part of the window."""
        if self.size is not None and start == self.start and stop == self.stop:
            return self.size
        return body_bytes(self.messages[start:stop])

    def narrow(self, start: int, stop: int) -> None:
        """Leave a part of the window, which keeps nothing of a long list alive that it left."""
        self.size = None
        if 4 * (stop - start) < len(self.messages):
            self.offsets = self.offsets[start:stop]
            self.messages = self.messages[start:stop]
            start, stop = 0, stop - start
        self.start, self.stop = start, stop
        self.first, self.last = self.offsets[start], self.offsets[stop - 1]

    def alike(self, at: int, messages: Sequence[CachedMessage], begin: int) -> int:
        """Return how many messages from index `at` are those from `begin`: 1 at least.

        The first has the same offset, and may still be another one with another body.
        """
        most = min(self.stop - at, len(messages) - begin)
        mine = self.messages
        if most == 1 or mine[at : at + most] == messages[begin : begin + most]:
            return most
        count = 0
        while count < most and mine[at + count] is messages[begin + count]:
            count += 1
        return max(count, 1)


_first = attrgetter("first")


def _rise(offsets: Sequence[int]) -> bool:
    """Return whether each offset is larger than the one before it."""
    return isinstance(offsets, range) or sorted(set(offsets)) == offsets


class OffsetRuns(Generic[M]):
    """Messages in the order of their offsets, each offset once."""

    def __init__(self) -> None:
        self._runs: list[_Run[M]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, offset: int) -> bool:
        number = self._number(offset)
        return number >= 0 and self._runs[number].index(offset) >= 0

    def __iter__(self) -> Iterator[M]:
        for run in self._runs:
            yield from run.messages[run.start : run.stop]

    @property
    def first(self) -> int:
        """The lowest offset. Ask only if there is one."""
        return self._runs[0].first

    @property
    def last(self) -> int:
        """The highest offset. Ask only if there is one."""
        return self._runs[-1].last

    @property
    def first_message(self) -> M:
        """The message at the lowest offset. Ask only if there is one."""
        run = self._runs[0]
        return run.messages[run.start]

    @property
    def size(self) -> int:
        """The bytes of all bodies."""
        return sum([run.bytes_between(run.start, run.stop) for run in self._runs])

    def add(self, messages: Sequence[M]) -> int | None:
        """Add messages as one run and return their bytes. The list is kept: do not change it.

        None, and nothing is added, if their offsets do not rise or others lie among them.
        """
        if not messages:
            return 0
        offsets, size = offsets_and_bytes(messages)
        if not _rise(offsets):
            return None
        number = self._number(offsets[0])
        runs = self._runs
        if number >= 0 and runs[number].last >= offsets[0]:
            return None
        if number + 1 < len(runs) and runs[number + 1].first <= offsets[-1]:
            return None
        count = len(offsets)
        kept = messages if isinstance(messages, list) else list(messages)
        runs.insert(number + 1, _Run(offsets, kept, 0, count, size))
        self._count += count
        return size

    def append(self, offsets: Sequence[int], messages: list[M]) -> None:
        """Add messages whose offsets rise, and are higher than all others, as one run."""
        self._runs.append(_Run(offsets, messages, 0, len(messages), None))
        self._count += len(messages)

    def set(self, message: M) -> bool:
        """Add a message, or replace the one at its offset; return whether the offset is new."""
        offset = message.queue_offset
        number = self._number(offset)
        run = self._runs[number] if number >= 0 else None
        at = -1 if run is None else run.index(offset)
        if run is not None and at >= 0:
            run.size, run.messages = None, run.messages[:]
            run.messages[at] = message
            return False
        if run is not None and run.first < offset < run.last:
            self._split(number, bisect_left(run.offsets, offset))
        self._runs.insert(number + 1, _Run(range(offset, offset + 1), [message], 0, 1, None))
        self._count += 1
        return True

    def remove(self, messages: Iterable[CachedMessage]) -> tuple[int, int]:
        """Remove messages by their offsets; return how many were there, and their bytes."""
        given = messages if isinstance(messages, list) else list(messages)
        removed = size = at = 0
        while at < len(given):
            offset = given[at].queue_offset
            number = self._number(offset)
            start = self._runs[number].index(offset) if number >= 0 else -1
            if start < 0:
                at += 1
                continue
            run = self._runs[number]
            count = run.alike(start, given, at)
            if count == 1:
                # Java counts the bytes of what it is given, which may not be what is here.
                size += given[at].body_size
            else:
                size += run.bytes_between(start, start + count)
            self._drop(number, start, start + count)
            removed += count
            at += count
        return removed, size

    def move(self, limit: int, to: "OffsetRuns[M]") -> list[M]:
        """Move the first messages to others; return them."""
        moved: list[M] = []
        while self._runs and len(moved) < limit:
            run = self._runs[0]
            start, stop = run.start, min(run.stop, run.start + limit - len(moved))
            part = run.messages[start:stop]
            if to and to.last >= run.first:
                to.put(part)
            else:
                to.append(run.offsets[start:stop], part)
            moved += part
            self._drop(0, start, stop)
        return moved

    def put(self, messages: Sequence[M]) -> None:
        """Add messages, or replace those at their offsets."""
        if self.add(messages) is None:
            for message in messages:
                self.set(message)

    def cut(self, end: int) -> tuple[int, int]:
        """Remove what is at offset `end` or above; return how many, and their bytes."""
        removed = size = 0
        while self._runs and (run := self._runs[-1]).last >= end:
            start = bisect_left(run.offsets, end, run.start, run.stop)
            removed += run.stop - start
            size += run.bytes_between(start, run.stop)
            self._drop(len(self._runs) - 1, start, run.stop)
        return removed, size

    def clear(self) -> None:
        """Remove everything."""
        self._runs.clear()
        self._count = 0

    def _drop(self, number: int, start: int, stop: int) -> None:
        """Remove a part of a run."""
        run = self._runs[number]
        self._count -= stop - start
        if start == run.start:
            if stop == run.stop:
                del self._runs[number]
            else:
                run.narrow(stop, run.stop)
            return
        before = start - run.start
        if stop < run.stop:
            self._split(number, stop)  # which may move the indexes
        run.narrow(run.start, run.start + before)

    def _split(self, number: int, at: int) -> None:
        """Make two runs of one, the second from index `at` on."""
        run = self._runs[number]
        behind = _Run(run.offsets, run.messages, at, run.stop, None)
        behind.narrow(at, run.stop)
        run.narrow(run.start, at)
        self._runs.insert(number + 1, behind)

    def _number(self, offset: int) -> int:
        """Return the number of the last run that begins at an offset or before it, -1 if none."""
        runs = self._runs
        if len(runs) > 1 and runs[1].first <= offset:
            return bisect_right(runs, offset, key=_first) - 1
        return 0 if runs and runs[0].first <= offset else -1
