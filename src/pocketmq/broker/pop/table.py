"""Everything popped on a broker, as requests read and change it; changes go to the journal.

Each change is made in `all_in_flight` and noted in the journal, from which `recovery` replays it
after a crash. Times are the caller's. Belongs to the broker's loop.
"""

from collections.abc import Iterable, Sequence

import msgspec

from pocketmq.broker.offsets.table import ConsumerOffsetTable
from pocketmq.broker.pop import changes
from pocketmq.broker.pop.all_in_flight import AllInFlight, LockedQueue
from pocketmq.broker.pop.in_flight import OrderedAckRefusal, OrderedPop, QueueInFlight, Taken
from pocketmq.broker.pop.journal import Journal
from pocketmq.store import QueueIndex

LATEST_MS = 1 << 52
"""The latest time, whatever clients ask for."""


class PopTable:
    """The messages in flight of all groups, and the journal of their changes."""

    def __init__(self, offsets: ConsumerOffsetTable, journal: Journal) -> None:
        self.all_in_flight = AllInFlight(offsets)
        self.deadlines = self.all_in_flight.deadlines
        self._journal = journal

    # Looking

    def locked(self, topic: str, group: str, queue_id: int) -> LockedQueue | None:
        """Return the latest ordered pop of a queue."""
        return self.all_in_flight.find_locked(topic, group, queue_id)

    def cursor(self, topic: str, group: str, queue_id: int) -> int | None:
        """Return where the next pop of a queue begins; None for a group that is new to it."""
        committed = self.all_in_flight.offsets.query(group, topic, queue_id)
        in_flight = self.all_in_flight.find(topic, group, queue_id)
        if in_flight is None:
            return committed
        return in_flight.next if committed is None else max(in_flight.next, committed)

    def left_in(
        self, topic: str, group: str, queues: Iterable[QueueIndex]
    ) -> list[tuple[QueueIndex, int | None, int | None]]:
        """Return for queues of a topic where a pop continues, and what is left; None if unsure.

        Pops check all queues of a topic, most of them in vain: so it is one call for all of them.
        """
        pair, offsets = (topic, group), self.all_in_flight.offsets
        committed = offsets.committed.get(pair, _NONE)
        by_queue = self.all_in_flight.by_group.get(pair, _NONE_IN_FLIGHT)
        resets = offsets.resets_of(group, topic)
        found: list[tuple[QueueIndex, int | None, int | None]] = []
        if not by_queue and not resets:  # as of a group that acknowledges one after another
            for queue in queues:
                start, end = committed.get(queue.queue_id), queue.next_offset
                if start is not None and 0 <= start <= end:
                    found.append((queue, start, end - start))
                else:
                    found.append((queue, None, None))
            return found
        for queue in queues:
            queue_id, end = queue.queue_id, queue.next_offset
            start = committed.get(queue_id)
            in_flight = by_queue.get(queue_id)
            if in_flight is not None and (start is None or start < in_flight.next):
                start = in_flight.next
            if start is None or not 0 <= start <= end:
                found.append((queue, None, None))
            elif not resets or queue_id not in resets:
                found.append((queue, start, end - start))
            else:  # taking from the queue carries the reset out
                found.append((queue, None, end - start if in_flight is None else None))
        return found

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """Return the number of messages a group has in flight of a queue."""
        in_flight = self.all_in_flight.find(topic, group, queue_id)
        return 0 if in_flight is None else len(in_flight.held)

    # Changing

    def take(self, popped: changes.MessagesPopped) -> None:
        """Note messages that are popped."""
        self._journal.note(popped)
        self.all_in_flight.take(popped)

    def skip(self, topic: str, group: str, queue_id: int, following: int) -> None:
        """Skip messages that match no filter; not noted, since it can be repeated."""
        in_flight = self.all_in_flight.find(topic, group, queue_id)
        if in_flight is not None:
            in_flight.next = max(in_flight.next, following)
        else:
            self.all_in_flight.commit(topic, group, queue_id, following)

    def settle(
        self,
        topic: str,
        group: str,
        queue_id: int,
        pop_time_ms: int,
        offsets: Sequence[int],
        *,
        later: bool = False,
    ) -> int:
        """Note messages that are done; return how many of them this pop still had in flight.

        With `later` the caller calls `all_in_flight.finish` next.
        """
        in_flight = self.all_in_flight.find(topic, group, queue_id)
        if in_flight is None:
            return 0
        settled = self.all_in_flight.settle(in_flight, pop_time_ms, offsets, later=later)
        if settled:
            self._journal.note_settled(topic, group, queue_id, pop_time_ms, settled)
        return len(settled)

    def copied(self, taken: Taken, offset: int, copy: int) -> None:
        """Note that a message is done because its copy lies at a position of the log."""
        in_flight = taken.in_flight
        if self.all_in_flight.settle(in_flight, taken.pop_time_ms, [offset]):
            place = in_flight.topic, in_flight.group, in_flight.queue_id, taken.pop_time_ms
            self._journal.note_settled(*place, [offset], [copy])

    def change(self, changed: changes.VisibilityChanged) -> bool:
        """Hide a message until another time; False if it is not in flight with the pop named."""
        if not self.all_in_flight.change(changed):
            return False
        self._journal.note(changed)
        return True

    def lock(self, topic: str, group: str, queue_id: int, pop: OrderedPop, now_ms: int) -> None:
        """Note an ordered pop; the counts of the one before are carried over."""
        before = self.locked(topic, group, queue_id)
        if before is not None:
            before.pop.followed_by(pop)
        self._note_locked(self.all_in_flight.lock(topic, group, queue_id, pop, now_ms))

    def ack_ordered(
        self, queue: LockedQueue, offset: int, pop_time_ms: int, now_ms: int
    ) -> OrderedAckRefusal | None:
        """Note an acknowledgement of an ordered pop; None if it counts."""
        verdict = queue.pop.ack(offset, pop_time_ms)
        if verdict is None:
            self.all_in_flight.commit(
                queue.topic, queue.group, queue.queue_id, queue.pop.next_offset
            )
            self.all_in_flight.free_when_due(queue, now_ms)
            self._note_locked(queue)
        return verdict

    def change_ordered(
        self, queue: LockedQueue, offset: int, pop_time_ms: int, visible_ms: int, now_ms: int
    ) -> bool:
        """Hide a message of an ordered pop until another time."""
        if not queue.pop.change(offset, pop_time_ms, visible_ms):
            return False
        self.all_in_flight.free_when_due(queue, now_ms)
        self._note_locked(queue)
        return True

    def clear(self, topic: str, group: str, queue_id: int, target: int) -> None:
        """Drop what a group has in flight of a queue: its offset was reset."""
        self.all_in_flight.clear(topic, group, queue_id)
        self._journal.note(changes.QueueCleared(topic, group, queue_id, target))

    def forget(self, topic: str | None = None, group: str | None = None) -> None:
        """Drop all of a topic, or of a group, that was deleted.

        Noted also if nothing is in flight: earlier entries would set its offsets again.
        """
        self.all_in_flight.forget(topic, group)
        self._journal.note(changes.PopsForgotten(topic, group))

    def _note_locked(self, queue: LockedQueue) -> None:
        topic, group, queue_id = queue.topic, queue.group, queue.queue_id
        committed = self.all_in_flight.offsets.committed.get((topic, group), _NONE).get(
            queue_id, -1
        )
        pop = msgspec.structs.replace(queue.pop)  # as it is now: it may change before it is sealed
        pop.visible_ms = dict(pop.visible_ms)
        self._journal.note(changes.QueueLocked(topic, group, queue_id, committed, pop))


_NONE: dict[int, int] = {}
_NONE_IN_FLIGHT: dict[int, QueueInFlight] = {}
