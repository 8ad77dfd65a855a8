"""All messages in flight on a broker, by queue: their deadlines, locked queues, and offsets.

The changes themselves, for requests and for recovery alike; writing them to the journal is
`table`'s. Commits offsets as far as everything is done, and never backwards: another member of the
group may pull. Belongs to the broker's loop.
"""

from collections.abc import Sequence
from typing import TypeVar

from pocketmq.broker.offsets.table import ConsumerOffsetTable
from pocketmq.broker.pop.changes import MessagesPopped, VisibilityChanged
from pocketmq.broker.pop.in_flight import Deadlines, OrderedPop, QueueInFlight, Taken

T = TypeVar("T")


class LockedQueue:
    """A queue that is popped in order."""

    __slots__ = ("bucket", "group", "pop", "queue_id", "topic")

    def __init__(self, topic: str, group: str, queue_id: int, pop: OrderedPop) -> None:
        self.topic = topic
        self.group = group
        self.queue_id = queue_id
        self.pop = pop
        self.bucket = 0  # see `Deadlines`


class AllInFlight:
    """The messages in flight of all groups."""

    def __init__(self, offsets: ConsumerOffsetTable) -> None:
        self.offsets = offsets
        self.by_group: dict[tuple[str, str], dict[int, QueueInFlight]] = {}
        self.locked: dict[tuple[str, str], dict[int, LockedQueue]] = {}
        self.deadlines: Deadlines[Taken | LockedQueue] = Deadlines()
        self._settled: list[tuple[QueueInFlight, list[Taken]]] = []  # see `finish`

    def find(self, topic: str, group: str, queue_id: int) -> QueueInFlight | None:
        """Return what a group has in flight of a queue; None if there is nothing."""
        by_queue = self.by_group.get((topic, group))
        return None if by_queue is None else by_queue.get(queue_id)

    def find_locked(self, topic: str, group: str, queue_id: int) -> LockedQueue | None:
        """Return the latest ordered pop of a queue; None if all of it is acknowledged."""
        queues = self.locked.get((topic, group))
        return None if queues is None else queues.get(queue_id)

    def make(self, topic: str, group: str, queue_id: int) -> QueueInFlight:
        """Return what a group has in flight of a queue, created if there is nothing."""
        by_queue = self.by_group.setdefault((topic, group), {})
        in_flight = by_queue.get(queue_id)
        if in_flight is None:
            in_flight = by_queue[queue_id] = QueueInFlight(topic, group, queue_id)
        return in_flight

    def take(self, popped: MessagesPopped) -> None:
        """Add what was popped."""
        topic, group, queue_id = popped.topic, popped.group, popped.queue_id
        in_flight = self.make(topic, group, queue_id)
        times = popped.pop_time_ms, popped.until_ms
        taken = in_flight.take(popped.all_offsets(), popped.following, times)
        self.deadlines.add(taken, popped.until_ms)
        self.offsets.advance(group, topic, queue_id, in_flight.low)

    def hold(self, taken: Taken) -> None:
        """Set the deadline after which a pop is redelivered."""
        self.deadlines.add(taken, taken.until_ms)

    def settle(
        self,
        in_flight: QueueInFlight,
        pop_time_ms: int,
        offsets: Sequence[int],
        *,
        later: bool = False,
    ) -> list[int]:
        """Settle messages; return those that this pop still had in flight.

        With `later` the caller calls `finish` before anything else is done with them.
        """
        settled, done = in_flight.settle(offsets, pop_time_ms)
        if settled:
            self._settled.append((in_flight, done))
            if not later:
                self.finish()
        return settled

    def finish(self) -> None:
        """Drop the deadlines of pops that are settled, and commit what is done."""
        settled, self._settled = self._settled, []
        for in_flight, done in settled:
            for taken in done:
                self.deadlines.discard(taken)
            self._advance(in_flight)

    def change(self, changed: VisibilityChanged) -> bool:
        """Hide a message until another time; False if it is not in flight with the pop named."""
        in_flight = self.find(changed.topic, changed.group, changed.queue_id)
        if in_flight is None:
            return False
        times = changed.pop_time_ms, changed.until_ms
        both = in_flight.change(changed.offset, changed.old_pop_time_ms, times)
        if both is None:
            return False
        if not both[0].left:
            self.deadlines.discard(both[0])
        self.hold(both[1])
        return True

    def lock(
        self, topic: str, group: str, queue_id: int, pop: OrderedPop, now_ms: int
    ) -> LockedQueue:
        """Set the latest ordered pop of a queue."""
        queues = self.locked.setdefault((topic, group), {})
        queue = queues.get(queue_id)
        if queue is None:
            queue = queues[queue_id] = LockedQueue(topic, group, queue_id, pop)
        queue.pop = pop
        self.free_when_due(queue, now_ms)
        return queue

    def free_when_due(self, queue: LockedQueue, now_ms: int) -> None:
        """Set the deadline of a lock; remove one of which everything is acknowledged."""
        self.deadlines.discard(queue)
        if queue.pop.is_done:
            self.clear(queue.topic, queue.group, queue.queue_id)
            return
        free_ms = queue.pop.free_at_ms(now_ms)
        if free_ms > now_ms:
            self.deadlines.add(queue, free_ms)

    def limit_waits(self, now_ms: int) -> None:
        """Hide no message for longer than was asked, if it was popped later than it is now.

        The clock was set back since.
        """
        for by_queue in self.by_group.values():
            for in_flight in by_queue.values():
                for taken in set(in_flight.held.values()):
                    if taken.pop_time_ms > now_ms:
                        self.deadlines.discard(taken)
                        self.deadlines.add(taken, now_ms + taken.until_ms - taken.pop_time_ms)
        for queues in self.locked.values():
            for queue in [*queues.values()]:
                if queue.pop.pop_time_ms > now_ms:
                    queue.pop.hide_until(now_ms + queue.pop.invisible_ms)
                    self.free_when_due(queue, now_ms)

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Drop what is in flight of a queue."""
        in_flight = _take_out(self.by_group, (topic, group), queue_id)
        if in_flight is not None:
            for taken in set(in_flight.held.values()):
                self.deadlines.discard(taken)
            in_flight.held.clear()
        queue = _take_out(self.locked, (topic, group), queue_id)
        if queue is not None:
            self.deadlines.discard(queue)

    def forget(self, topic: str | None, group: str | None) -> None:
        """Drop what is in flight of a topic, and of a group."""
        for pair in {*self.by_group, *self.locked}:
            if pair[0] == topic or pair[1] == group:
                for queue_id in {*self.by_group.get(pair, ()), *self.locked.get(pair, ())}:
                    self.clear(*pair, queue_id)

    def commit(self, topic: str, group: str, queue_id: int, offset: int) -> None:
        """Commit an offset unless the group is further, or a reset is pending."""
        self.offsets.advance(group, topic, queue_id, offset)

    def _advance(self, in_flight: QueueInFlight) -> None:
        """Commit what is done; remove a queue with nothing in flight."""
        topic, group, queue_id = in_flight.topic, in_flight.group, in_flight.queue_id
        self.offsets.advance(group, topic, queue_id, in_flight.low)
        if not in_flight.held:
            _take_out(self.by_group, (topic, group), queue_id)


def _take_out(
    table: dict[tuple[str, str], dict[int, T]], pair: tuple[str, str], queue_id: int
) -> T | None:
    by_queue = table.get(pair)
    if by_queue is None:
        return None
    found = by_queue.pop(queue_id, None)
    if not by_queue:
        del table[pair]
    return found
