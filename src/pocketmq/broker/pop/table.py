"""Everything popped on a broker, as requests read and change it; changes go to the journal.

Each change is made in `shelves` and noted in the journal, from which `keeping` replays it after a
crash. Times are the caller's. Belongs to the broker's loop.
"""

from collections.abc import Callable, Iterable

import msgspec

from pocketmq.broker.offsets.table import ConsumerOffsetTable
from pocketmq.broker.pop.journal import (
    Journal,
    MessagesPopped,
    PopsForgotten,
    QueueCleared,
    QueueLocked,
    VisibilityChanged,
)
from pocketmq.broker.pop.ordered import OrderedAckRefusal, OrderedPop
from pocketmq.broker.pop.shelf import Shelf, Taken
from pocketmq.broker.pop.shelves import LockedQueue, Shelves
from pocketmq.store import QueueIndex

LATEST_MS = 1 << 52
"""The latest time, whatever clients ask for."""


class PopTable:
    """The messages in flight of all groups, and the journal of their changes."""

    def __init__(self, offsets: ConsumerOffsetTable, journal: Journal) -> None:
        self.shelves = Shelves(offsets)
        self.deadlines = self.shelves.deadlines
        self._journal = journal

    # Looking

    def locked(self, topic: str, group: str, queue_id: int) -> LockedQueue | None:
        """Return the latest ordered pop of a queue."""
        return self.shelves.find_locked(topic, group, queue_id)

    def cursor(self, topic: str, group: str, queue_id: int) -> int | None:
        """Return where the next pop of a queue begins; None for a group that is new to it."""
        committed = self.shelves.offsets.query(group, topic, queue_id)
        shelf = self.shelves.find(topic, group, queue_id)
        if shelf is None:
            return committed
        return shelf.next if committed is None else max(shelf.next, committed)

    def left_of(self, topic: str, group: str) -> Callable[[QueueIndex], int | None]:
        """Return a function that counts what is left in a queue; None where one has to read.

        Pops check all queues of a topic, most of them in vain.
        """
        offsets = self.shelves.offsets
        committed = offsets.committed.get((topic, group), _NONE)
        shelves = self.shelves.shelves.get((topic, group), _NO_SHELVES)

        def left(queue: QueueIndex) -> int | None:
            queue_id = queue.queue_id
            start = committed.get(queue_id)
            shelf = shelves.get(queue_id)
            if shelf is not None:
                if offsets.has_reset(group, topic, queue_id):
                    return None
                start = shelf.next if start is None else max(shelf.next, start)
            if start is None or start < 0 or start > queue.next_offset:
                return None
            return queue.next_offset - start

        return left

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """Return the number of messages a group has in flight of a queue."""
        shelf = self.shelves.find(topic, group, queue_id)
        return 0 if shelf is None else len(shelf.held)

    # Changing

    def take(self, popped: MessagesPopped) -> None:
        """Note messages that are popped."""
        self._journal.note(popped)
        self.shelves.take(popped)

    def skip(self, topic: str, group: str, queue_id: int, following: int) -> None:
        """Skip messages that match no filter; not noted, since it can be repeated."""
        shelf = self.shelves.find(topic, group, queue_id)
        if shelf is not None:
            shelf.next = max(shelf.next, following)
        else:
            self.shelves.commit(topic, group, queue_id, following)

    def settle(
        self, topic: str, group: str, queue_id: int, pop_time_ms: int, offsets: Iterable[int]
    ) -> int:
        """Note messages that are done; return how many of them this pop still had in flight."""
        shelf = self.shelves.find(topic, group, queue_id)
        if shelf is None:
            return 0
        settled = self.shelves.settle(shelf, pop_time_ms, offsets)
        if settled:
            self._journal.note_settled(topic, group, queue_id, pop_time_ms, settled)
        return len(settled)

    def copied(self, taken: Taken, offset: int, copy: int) -> None:
        """Note that a message is done because its copy lies at a position of the log."""
        shelf = taken.shelf
        if self.shelves.settle(shelf, taken.pop_time_ms, [offset]):
            place = shelf.topic, shelf.group, shelf.queue_id, taken.pop_time_ms
            self._journal.note_settled(*place, [offset], [copy])

    def change(self, changed: VisibilityChanged) -> bool:
        """Hide a message until another time; False if it is not in flight with the pop named."""
        if not self.shelves.change(changed):
            return False
        self._journal.note(changed)
        return True

    def lock(self, topic: str, group: str, queue_id: int, pop: OrderedPop, now_ms: int) -> None:
        """Note an ordered pop; the counts of the one before are carried over."""
        before = self.locked(topic, group, queue_id)
        if before is not None:
            before.pop.followed_by(pop)
        self._note_locked(self.shelves.lock(topic, group, queue_id, pop, now_ms))

    def ack_ordered(
        self, queue: LockedQueue, offset: int, pop_time_ms: int, now_ms: int
    ) -> OrderedAckRefusal | None:
        """Note an acknowledgement of an ordered pop; None if it counts."""
        verdict = queue.pop.ack(offset, pop_time_ms)
        if verdict is None:
            self.shelves.commit(queue.topic, queue.group, queue.queue_id, queue.pop.next_offset)
            self.shelves.free_when_due(queue, now_ms)
            self._note_locked(queue)
        return verdict

    def change_ordered(
        self, queue: LockedQueue, offset: int, pop_time_ms: int, visible_ms: int, now_ms: int
    ) -> bool:
        """Hide a message of an ordered pop until another time."""
        if not queue.pop.change(offset, pop_time_ms, visible_ms):
            return False
        self.shelves.free_when_due(queue, now_ms)
        self._note_locked(queue)
        return True

    def clear(self, topic: str, group: str, queue_id: int, target: int) -> None:
        """Drop what a group has in flight of a queue: its offset was reset."""
        self.shelves.clear(topic, group, queue_id)
        self._journal.note(QueueCleared(topic, group, queue_id, target))

    def forget(self, topic: str | None = None, group: str | None = None) -> None:
        """Drop all of a topic, or of a group, that was deleted.

        Noted also if nothing is in flight: earlier entries would set its offsets again.
        """
        self.shelves.forget(topic, group)
        self._journal.note(PopsForgotten(topic, group))

    def _note_locked(self, queue: LockedQueue) -> None:
        topic, group, queue_id = queue.topic, queue.group, queue.queue_id
        committed = self.shelves.offsets.committed.get((topic, group), _NONE).get(queue_id, -1)
        pop = msgspec.structs.replace(queue.pop)  # as it is now: it may change before it is sealed
        pop.visible_ms = dict(pop.visible_ms)
        self._journal.note(QueueLocked(topic, group, queue_id, committed, pop))


_NONE: dict[int, int] = {}
_NO_SHELVES: dict[int, Shelf] = {}
