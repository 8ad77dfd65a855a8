"""Which timed message is due next: eight bytes for each, sorted only when their second has come.

Entries gather unsorted by the minute; the minutes that come next are cut into seconds a little at a
time, and a second is sorted when it begins. So a tick costs the same however many messages wait.
Pure bookkeeping: due times in milliseconds and offsets in the queue, in and out. What is kept here
can be rebuilt from the queue, which keeps the due time beside each message.
"""

import heapq
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

_SECOND = 1000
_MINUTE = 60_000
_AHEAD = 2 * _MINUTE
"""Milliseconds before its minute in which a message's second is found."""
_SHIFT = 48
_OFFSET = (1 << _SHIFT) - 1

Entry = tuple[int, int]
"""When a message is due, and its offset."""


class TimerWheel:
    """Timed messages by due time."""

    def __init__(self) -> None:
        self.count = 0
        self._minutes: dict[int, array[int]] = {}
        self._minute_heap: list[int] = []
        self._seconds: dict[int, array[int]] = {}
        self._second_heap: list[int] = []
        self._ready: list[Entry] = []  # sorted, the last is due first: those of one second
        self._ready_end = 0  # entries due before this time go to the ready ones
        self._near = 0  # entries due before this time go by the second

    def __len__(self) -> int:
        return self.count

    def add(self, entries: Iterable[Entry]) -> None:
        """Take in messages; an offset must be below 2**48."""
        minutes, far = self._minutes, max(self._near, self._ready_end)
        count = 0
        for due_ms, offset in entries:
            count += 1
            if due_ms >= far:
                minute = due_ms // _MINUTE
                packed = (due_ms - minute * _MINUTE) << _SHIFT | offset
                if minute in minutes:
                    minutes[minute].append(packed)
                else:
                    minutes[minute] = array("Q", (packed,))
                    heapq.heappush(self._minute_heap, minute)
            elif due_ms < self._ready_end:
                insort(self._ready, (due_ms, offset), key=_reversed)
            else:
                self._add_second(due_ms, offset)
        self.count += count

    def take_due(self, now_ms: int, limit: int) -> list[Entry]:
        """Return up to `limit` messages that are due, in the order in which they are."""
        found: list[Entry] = []
        ready = self._ready
        while len(found) < limit:
            if not ready and not self._begin_second(now_ms):
                break
            ready = self._ready
            while ready and ready[-1][0] <= now_ms and len(found) < limit:
                found.append(ready.pop())
            if ready:
                break
        self.count -= len(found)
        return found

    def put_back(self, entries: list[Entry]) -> None:
        """Add entries again that were taken."""
        self.count += len(entries)
        for entry in entries:
            if entry[0] < self._ready_end:
                insort(self._ready, entry, key=_reversed)
            else:
                self._add_second(*entry)

    def rewind(self) -> None:
        """Begin no second early: the clock was set back, and messages come that are due before."""
        ready, self._ready = self._ready, []
        self._ready_end = self._near = 0
        for entry in ready:
            self._add_second(*entry)

    def prepare(self, now_ms: int, limit: int) -> bool:
        """Split up to `limit` entries of coming minutes into seconds; return whether more remain.

        Call it now and then; what was not cut in time is cut when it is due.
        """
        while self._minute_heap and self._minute_heap[0] * _MINUTE < now_ms + _AHEAD:
            minute = self._minute_heap[0]
            packed = self._minutes[minute]
            self._near = max(self._near, (minute + 1) * _MINUTE)
            part = packed[-limit:]
            del packed[-limit:]
            self._cut(minute, part)
            limit -= len(part)
            if not packed:
                del self._minutes[minute]
                heapq.heappop(self._minute_heap)
            if limit <= 0:
                return bool(self._minutes)
        return False

    def next_look_ms(self) -> int | None:
        """Return when to check again, at the latest when a message is due; None for never."""
        if self._ready:
            return self._ready[-1][0]
        looks = [heap[0] * unit for heap, unit in self._heaps() if heap]
        return min(looks, default=None)

    def due(self, now_ms: int) -> int:
        """Count messages that are due and still here."""
        count = sum(1 for due_ms, _ in self._ready if due_ms <= now_ms)
        for buckets, unit in ((self._seconds, _SECOND), (self._minutes, _MINUTE)):
            for number, entries in buckets.items():
                passed = now_ms - number * unit
                if passed >= unit:
                    count += len(entries)
                elif passed >= 0:
                    count += sum(1 for packed in entries if packed >> _SHIFT <= passed)
        return count

    def ahead(self, now_ms: int, bounds: Sequence[int]) -> list[int]:
        """Count messages by the seconds that they are ahead: up to each bound, from the one before.

        Far ones count where their minute begins.
        """
        counts = [0] * (len(bounds) + 1)
        for due_ms, _ in self._ready:
            counts[bisect_left(bounds, (due_ms - now_ms) / 1000)] += 1
        for buckets, unit in ((self._seconds, _SECOND), (self._minutes, _MINUTE)):
            for number, entries in buckets.items():
                counts[bisect_left(bounds, (number * unit - now_ms) / 1000)] += len(entries)
        return counts[:-1]

    def before(self, offset: int) -> list[Entry]:
        """Return the messages with lower offsets, in time linear to all; they stay."""
        found = [entry for entry in self._ready if entry[1] < offset]
        for buckets, unit in ((self._seconds, _SECOND), (self._minutes, _MINUTE)):
            for number, packed in buckets.items():
                found += [
                    (number * unit + (each >> _SHIFT), each & _OFFSET)
                    for each in packed
                    if each & _OFFSET < offset
                ]
        return found

    def drop_before(self, offset: int) -> None:
        """Forget the messages with lower offsets."""
        self._ready = [entry for entry in self._ready if entry[1] >= offset]
        for buckets in (self._seconds, self._minutes):
            for number, packed in buckets.items():
                kept = [each for each in packed if each & _OFFSET >= offset]
                buckets[number] = array("Q", kept)
        self._seconds = {number: packed for number, packed in self._seconds.items() if packed}
        self._minutes = {number: packed for number, packed in self._minutes.items() if packed}
        self._second_heap = sorted(self._seconds)
        self._minute_heap = sorted(self._minutes)
        sizes = map(len, (*self._seconds.values(), *self._minutes.values()))
        self.count = len(self._ready) + sum(sizes)

    def _heaps(self) -> tuple[tuple[list[int], int], ...]:
        return (self._second_heap, _SECOND), (self._minute_heap, _MINUTE)

    def _cut(self, minute: int, part: Iterable[int]) -> None:
        start = minute * _MINUTE
        for packed in part:
            self._add_second(start + (packed >> _SHIFT), packed & _OFFSET)

    def _add_second(self, due_ms: int, offset: int) -> None:
        second = due_ms // _SECOND
        packed = (due_ms % _SECOND) << _SHIFT | offset
        try:
            self._seconds[second].append(packed)
        except KeyError:
            self._seconds[second] = array("Q", (packed,))
            heapq.heappush(self._second_heap, second)

    def _begin_second(self, now_ms: int) -> bool:
        """Sort the next second that has begun; return whether there is one."""
        while self._minute_heap and self._minute_heap[0] * _MINUTE <= now_ms:
            minute = heapq.heappop(self._minute_heap)
            self._near = max(self._near, (minute + 1) * _MINUTE)
            self._cut(minute, self._minutes.pop(minute))
        if not self._second_heap or self._second_heap[0] * _SECOND > now_ms:
            return False
        second = heapq.heappop(self._second_heap)
        start = second * _SECOND
        self._ready = [
            (start + (packed >> _SHIFT), packed & _OFFSET)
            for packed in sorted(self._seconds.pop(second), reverse=True)
        ]
        self._ready_end = start + _SECOND
        return True


def _reversed(entry: Entry) -> Entry:
    return -entry[0], -entry[1]
