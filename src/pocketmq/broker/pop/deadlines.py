"""What is due when: pops whose messages come back, locked queues that become free.

Moments are rounded up to a tenth of a second, so that many share one entry, and one that is settled
before its time leaves nothing behind. Pure bookkeeping. Belongs to the broker's loop.
"""

import heapq
from typing import Generic, Protocol, TypeVar

STEP_MS = 100
_LATEST = 1 << 52


class Expiring(Protocol):
    """Something with a moment of its own."""

    bucket: int


T = TypeVar("T", bound=Expiring)


class Deadlines(Generic[T]):
    """Things by the moment they are due."""

    def __init__(self) -> None:
        self._buckets: dict[int, dict[T, None]] = {}
        self._heap: list[int] = []

    def add(self, thing: T, due_ms: int) -> None:
        """Add one; it must not be there already."""
        bucket = max(1, min(-(-due_ms // STEP_MS), _LATEST))
        thing.bucket = bucket
        try:
            self._buckets[bucket][thing] = None
        except KeyError:
            self._buckets[bucket] = {thing: None}
            heapq.heappush(self._heap, bucket)

    def discard(self, thing: T) -> None:
        """Take one out, if it is there."""
        bucket = self._buckets.get(thing.bucket)
        if bucket is not None:
            bucket.pop(thing, None)
            if not bucket:
                del self._buckets[thing.bucket]
                if len(self._heap) > 2 * len(self._buckets) + 1024:
                    self._heap = sorted(self._buckets)
        thing.bucket = 0

    @property
    def next_ms(self) -> int | None:
        """When the next one is due; None if nothing is."""
        heap = self._heap
        while heap and heap[0] not in self._buckets:
            heapq.heappop(heap)
        return heap[0] * STEP_MS if heap else None

    def take_due(self, now_ms: int) -> list[T]:
        """Give those of the earliest moment that is over; none if none is."""
        due_ms = self.next_ms
        if due_ms is None or due_ms > now_ms:
            return []
        things = list(self._buckets.pop(heapq.heappop(self._heap)))
        for thing in things:
            thing.bucket = 0
        return things
