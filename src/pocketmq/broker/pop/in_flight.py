"""What one group has in flight of one queue, popped in any order or in order, and the deadlines.

A pop is one `Taken`, however many messages it holds, so that little is done for each message.
Deadlines are rounded up to a tenth of a second, so that many share one bucket; a pop that is
settled before its deadline leaves nothing behind. Pure bookkeeping, times are the caller's.
Independent of store and journal. Belongs to the broker's loop.

An ordered pop locks its queue until all that was taken is acknowledged, or its time is over.
Then the same messages are redelivered, from the first unacknowledged one on, with one more try
on its count. A client that did not get its answer asks again under the same attempt id, and
gets the same messages at once. The rules of ordered pops are those of RocketMQ 5.x.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Generic, Protocol, TypeVar

import msgspec

STEP_MS = 100
_LATEST = 1 << 52


class Expiring(Protocol):
    """Something with a deadline."""

    bucket: int


T = TypeVar("T", bound=Expiring)


class Deadlines(Generic[T]):
    """Pops and locked queues by their deadlines."""

    def __init__(self) -> None:
        self._buckets: dict[int, dict[T, None]] = {}
        self._heap: list[int] = []

    def add(self, thing: T, due_ms: int) -> None:
        """Add one; it must not be there already."""
        bucket = -(-due_ms // STEP_MS)
        if not 0 < bucket <= _LATEST:
            bucket = max(1, min(bucket, _LATEST))
        thing.bucket = bucket
        try:
            self._buckets[bucket][thing] = None
        except KeyError:
            self._buckets[bucket] = {thing: None}
            heapq.heappush(self._heap, bucket)

    def discard(self, thing: T) -> None:
        """Remove one, if it is there."""
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
        """Remove and return those of the earliest deadline that has passed; none if none has."""
        due_ms = self.next_ms
        if due_ms is None or due_ms > now_ms:
            return []
        things = list(self._buckets.pop(heapq.heappop(self._heap)))
        for thing in things:
            thing.bucket = 0
        return things


class Taken:
    """Messages popped together, or one whose time was changed: hidden until the same time."""

    __slots__ = ("bucket", "in_flight", "left", "offsets", "pop_time_ms", "until_ms")

    def __init__(
        self, in_flight: "QueueInFlight", offsets: Iterable[int], pop_time_ms: int, until_ms: int
    ) -> None:
        self.in_flight = in_flight
        self.offsets = tuple(offsets)
        self.pop_time_ms = pop_time_ms
        self.until_ms = until_ms
        self.left = len(self.offsets)
        self.bucket = 0  # see `Deadlines`

    def out(self) -> list[int]:
        """Return the offsets that are still in flight with this pop."""
        held = self.in_flight.held
        return [offset for offset in self.offsets if held.get(offset) is self]


class QueueInFlight:
    """The messages that one group has in flight of one queue."""

    __slots__ = ("_order", "group", "held", "next", "queue_id", "topic")

    def __init__(self, topic: str, group: str, queue_id: int) -> None:
        self.topic = topic
        self.group = group
        self.queue_id = queue_id
        self.next = 0
        """Messages before this one were popped or skipped; counts while any are in flight."""
        self.held: dict[int, Taken] = {}
        self._order: deque[int] = deque()  # as taken; those no longer held go when they are first

    @property
    def low(self) -> int:
        """The first offset that is not done with."""
        order, held = self._order, self.held
        if not held:
            order.clear()
        while order and order[0] not in held:
            order.popleft()
        return order[0] if order else self.next

    def take(self, offsets: Iterable[int], following: int, times: tuple[int, int]) -> Taken:
        """Note a pop: its messages, where the next begins, when it was and how long it hides."""
        taken = Taken(self, offsets, *times)
        if not self.held:
            self._order.clear()
        else:
            for offset in taken.offsets:
                before = self.held.get(offset)
                if before is not None:
                    before.left -= 1
        self.held.update(dict.fromkeys(taken.offsets, taken))
        self._order.extend(taken.offsets)
        self.next = following
        return taken

    def sort(self) -> None:
        """Bring what was taken over from elsewhere into order."""
        self._order = deque(sorted(self.held))

    def settle(self, offsets: Sequence[int], pop_time_ms: int) -> tuple[list[int], list[Taken]]:
        """Note that messages are done with; return them, and the pops of which none is left.

        Without those that another pop has by now.
        """
        settled: list[int] = []
        done: list[Taken] = []
        held = self.held
        if len(held) == len(offsets) > 1:  # all of a pop, and there is no other, as most often
            taken = held.get(offsets[0])
            if (
                taken is not None
                and taken.pop_time_ms == pop_time_ms
                and taken.left == len(offsets)
                and taken.offsets == tuple(offsets)
            ):
                held.clear()
                taken.left = 0
                return [*offsets], [taken]
        for offset in offsets:
            taken = held.get(offset)
            if taken is not None and taken.pop_time_ms == pop_time_ms:
                del held[offset]
                settled.append(offset)
                taken.left -= 1
                if not taken.left:
                    done.append(taken)
        return settled, done

    def change(
        self, offset: int, pop_time_ms: int, times: tuple[int, int]
    ) -> tuple[Taken, Taken] | None:
        """Hide a message until another time; return its old pop and its new one."""
        taken = self.held.get(offset)
        if taken is None or taken.pop_time_ms != pop_time_ms:
            return None
        taken.left -= 1
        changed = self.held[offset] = Taken(self, (offset,), *times)
        return taken, changed


class OrderedAckRefusal(Enum):
    """Why an acknowledgement moves nothing."""

    STALE = "stale"  # of an earlier pop: no harm
    UNKNOWN = "unknown"  # of a message that was not taken


class OrderedPop(msgspec.Struct, array_like=True):
    """The latest ordered pop of a queue."""

    attempt_id: str | None
    pop_time_ms: int
    invisible_ms: int
    offsets: list[int]
    acked: int = 0  # bits, by place in `offsets`
    visible_ms: dict[int, int] = {}  # by offset, where it was changed
    counts: dict[int, int] = {}  # earlier tries, by offset

    def is_blocked(self, attempt_id: str | None, now_ms: int) -> bool:
        """Return whether another pop has to wait."""
        if self.attempt_id is not None and self.attempt_id == attempt_id:
            return False
        return self.free_at_ms(now_ms) > now_ms

    def free_at_ms(self, now_ms: int) -> int:
        """Return when the queue is free, now if it is."""
        standard = self.pop_time_ms + self.invisible_ms
        latest = now_ms
        for place, offset in enumerate(self.offsets):
            if not self.acked >> place & 1:
                latest = max(latest, self.visible_ms.get(offset, standard))
        return latest

    @property
    def is_done(self) -> bool:
        """Whether everything is acknowledged."""
        return self.acked == (1 << len(self.offsets)) - 1

    @property
    def next_offset(self) -> int:
        """The first offset that is not acknowledged."""
        for place, offset in enumerate(self.offsets):
            if not self.acked >> place & 1:
                return offset
        return self.offsets[-1] + 1

    def ack(self, offset: int, pop_time_ms: int) -> OrderedAckRefusal | None:
        """Note an acknowledgement; None if it counts."""
        if pop_time_ms != self.pop_time_ms:
            return OrderedAckRefusal.STALE
        if offset not in self.offsets:
            return OrderedAckRefusal.UNKNOWN
        self.acked |= 1 << self.offsets.index(offset)
        return None

    def change(self, offset: int, pop_time_ms: int, visible_ms: int) -> bool:
        """Hide a message until another time; False if it is not in flight with this pop."""
        if pop_time_ms != self.pop_time_ms or offset not in self.offsets:
            return False
        self.visible_ms[offset] = visible_ms
        return True

    def hide_until(self, moment_ms: int) -> None:
        """Hide nothing for longer than until a time."""
        standard = self.pop_time_ms + self.invisible_ms
        for offset in self.offsets:
            self.visible_ms[offset] = min(self.visible_ms.get(offset, standard), moment_ms)

    def followed_by(self, following: "OrderedPop") -> None:
        """Carry counts over to the next pop of the queue.

        A further answer to the same attempt is no further try.
        """
        if self.attempt_id is not None and self.attempt_id == following.attempt_id:
            following.counts = dict(self.counts)
            return
        before = set(self.offsets)
        following.counts = {
            offset: self.counts.get(offset, 0) + 1
            for offset in following.offsets
            if offset in before
        }

    def count_of_queue(self) -> int:
        """Return the smallest count, for clients that read the queue's alone."""
        if len(self.counts) != len(self.offsets):
            return 0  # some come for the first time
        return min(self.counts.values(), default=0)


def ordered_pop(
    attempt_id: str | None, pop_time_ms: int, invisible_ms: int, offsets: Sequence[int]
) -> OrderedPop:
    """Make the value for a new pop."""
    return OrderedPop(attempt_id, pop_time_ms, invisible_ms, list(offsets))
