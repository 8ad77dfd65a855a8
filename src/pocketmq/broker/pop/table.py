"""Everything popped on a broker: shelves by topic, group and queue, locked queues, and offsets.

Each change is noted in the journal and carried out by the same code that carries it out again after
a crash. Commits as far as everything is done with, and never backwards: another member of the group
may pull. Times are the caller's. Belongs to the broker's loop.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from pocketmq.broker.offsets import OffsetTable
from pocketmq.broker.pop.deadlines import Deadlines
from pocketmq.broker.pop.journal import (
    Changed,
    Cleared,
    Entry,
    Forgotten,
    Journal,
    Locked,
    Popped,
    Settled,
)
from pocketmq.broker.pop.ordered import OrderedPop, Verdict
from pocketmq.broker.pop.shelf import Shelf, Taken
from pocketmq.errors import BodyMalformed

LATEST_MS = 1 << 52
"""No moment lies behind this one, whatever clients ask for."""


class LockedQueue:
    """A queue that is popped in order."""

    __slots__ = ("bucket", "group", "pop", "queue_id", "topic")

    def __init__(self, topic: str, group: str, queue_id: int, pop: OrderedPop) -> None:
        self.topic = topic
        self.group = group
        self.queue_id = queue_id
        self.pop = pop
        self.bucket = 0


class SavedShelf(msgspec.Struct, array_like=True, gc=False):
    """A shelf as it is kept."""

    topic: str
    group: str
    queue_id: int
    following: int
    pops: list[tuple[int, int, list[int]]]  # when, until when, what is still out


class SavedPops(msgspec.Struct, gc=False):
    """What is kept of pops."""

    journal: int = 0
    """Entries of the journal before this record are in here."""
    shelves: list[SavedShelf] = []
    locked: list[Locked] = []


class PopTable:
    """What is out, of all groups."""

    def __init__(self, offsets: OffsetTable, journal: Journal) -> None:
        self._offsets = offsets
        self._journal = journal
        self._shelves: dict[tuple[str, str], dict[int, Shelf]] = {}
        self._locked: dict[tuple[str, str], dict[int, LockedQueue]] = {}
        self.deadlines: Deadlines[Taken | LockedQueue] = Deadlines()

    # Looking

    def shelf(self, topic: str, group: str, queue_id: int) -> Shelf | None:
        """Give what a group has out of a queue; None if there is nothing."""
        shelves = self._shelves.get((topic, group))
        return None if shelves is None else shelves.get(queue_id)

    def locked(self, topic: str, group: str, queue_id: int) -> LockedQueue | None:
        """Give the latest ordered pop of a queue."""
        queues = self._locked.get((topic, group))
        return None if queues is None else queues.get(queue_id)

    def cursor(self, topic: str, group: str, queue_id: int) -> int | None:
        """Give where the next pop of a queue begins; None for a group that is new to it."""
        committed = self._offsets.query(group, topic, queue_id)
        shelf = self.shelf(topic, group, queue_id)
        if shelf is None:
            return committed
        return shelf.next if committed is None else max(shelf.next, committed)

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """Give how many messages a group has out of a queue."""
        shelf = self.shelf(topic, group, queue_id)
        return 0 if shelf is None else len(shelf.held)

    # Changing

    def take(self, popped: Popped) -> None:
        """Note messages that are given out."""
        self._journal.note(popped)
        self._take(popped)

    def skip(self, topic: str, group: str, queue_id: int, following: int) -> None:
        """Go past messages nobody wants; not noted, since it can be done again."""
        shelf = self.shelf(topic, group, queue_id)
        if shelf is not None:
            shelf.next = max(shelf.next, following)
        else:
            self._commit(topic, group, queue_id, following)

    def settle(
        self, topic: str, group: str, queue_id: int, pop_time_ms: int, offsets: Iterable[int]
    ) -> int:
        """Note messages that are done with; give how many of them this pop still had out."""
        shelf = self.shelf(topic, group, queue_id)
        if shelf is None:
            return 0
        settled = 0
        for offset in offsets:
            taken = shelf.settle(offset, pop_time_ms)
            if taken is not None:
                settled += 1
                self._journal.note_settled(topic, group, queue_id, pop_time_ms, offset)
                if not taken.left:
                    self.deadlines.discard(taken)
        if settled:
            self._advance(shelf)
        return settled

    def change(self, changed: Changed) -> bool:
        """Hide a message until another moment; False if it is not out with the pop named."""
        if not self._change(changed):
            return False
        self._journal.note(changed)
        return True

    def lock(
        self, topic: str, group: str, queue_id: int, pop: OrderedPop, now_ms: int
    ) -> LockedQueue:
        """Note an ordered pop; the counts of the one before are carried over."""
        before = self.locked(topic, group, queue_id)
        if before is not None:
            before.pop.followed_by(pop)
        queue = self._lock(topic, group, queue_id, pop, now_ms)
        self._note_locked(queue)
        return queue

    def ack_ordered(
        self, queue: LockedQueue, offset: int, pop_time_ms: int, now_ms: int
    ) -> Verdict | None:
        """Note an acknowledgement of an ordered pop."""
        verdict = queue.pop.ack(offset, pop_time_ms)
        if verdict is None:
            self._commit(queue.topic, queue.group, queue.queue_id, queue.pop.next_offset)
            self._set_free(queue, now_ms)
            self._note_locked(queue)
            self._unlock_if_done(queue)
        return verdict

    def change_ordered(
        self, queue: LockedQueue, offset: int, pop_time_ms: int, visible_ms: int, now_ms: int
    ) -> bool:
        """Hide a message of an ordered pop until another moment."""
        if not queue.pop.change(offset, pop_time_ms, visible_ms):
            return False
        self._set_free(queue, now_ms)
        self._note_locked(queue)
        return True

    def clear(self, topic: str, group: str, queue_id: int, target: int) -> None:
        """Forget what a group has out of a queue: it is sent elsewhere."""
        if self._clear(topic, group, queue_id):
            self._journal.note(Cleared(topic, group, queue_id, target))

    def forget(self, topic: str | None = None, group: str | None = None) -> None:
        """Forget all of a topic, or of a group, that was deleted."""
        self._forget(topic, group)
        self._journal.note(
            Forgotten(topic, group)
        )  # also if nothing is out: offsets are noted, too

    # Keeping

    def snapshot(self) -> Callable[[], bytes]:
        """Capture everything, for a journal that has been sealed."""
        shelves = [
            SavedShelf(shelf.topic, shelf.group, shelf.queue_id, shelf.next, [*_pops_of(shelf)])
            for by_queue in self._shelves.values()
            for shelf in by_queue.values()
        ]
        locked = [
            Locked(queue.topic, queue.group, queue.queue_id, -1, msgspec.structs.replace(queue.pop))
            for queues in self._locked.values()
            for queue in queues.values()
        ]
        saved = SavedPops(self._journal.end, shelves, locked)
        return lambda: msgspec.msgpack.encode(saved)

    def recover(self, document: bytes | None, now_ms: int) -> int:
        """Go on from what was saved and what the journal says since; give how many are out.

        Raises `BodyMalformed` for a document that is none.
        """
        saved = SavedPops()
        if document is not None:
            try:
                saved = msgspec.msgpack.decode(document, type=SavedPops)
            except msgspec.MsgspecError as error:
                raise BodyMalformed("what is kept of pops", str(error)) from error
        for each in saved.shelves:
            shelf = self._make_shelf(each.topic, each.group, each.queue_id)
            for pop_time_ms, until_ms, offsets in each.pops:
                self._hold(shelf.take(offsets, each.following, (pop_time_ms, until_ms)))
            shelf.sort()
        # What the journal commits is gathered apart: a topic it tells of may have been deleted, and
        # offsets that were saved later than it was written win.
        known, self._offsets = self._offsets, OffsetTable()
        sent: set[tuple[str, str, int]] = set()
        try:
            for locked in saved.locked:
                self._replay(locked, now_ms)
            for entry in self._journal.entries(min(saved.journal, self._journal.end)):
                self._replay(entry, now_ms)
                if type(entry) is Cleared:
                    sent.add((entry.topic, entry.group, entry.queue_id))
        finally:
            found, self._offsets = self._offsets, known
        for (topic, group), by_queue in found.committed.items():
            for queue_id, offset in by_queue.items():
                if (topic, group, queue_id) in sent:
                    known.commit(group, topic, queue_id, offset)
                else:
                    self._commit(topic, group, queue_id, offset)
        return sum(len(s.held) for by_queue in self._shelves.values() for s in by_queue.values())

    # Inside

    def _replay(self, entry: Entry, now_ms: int) -> None:
        match entry:
            case Popped():
                self._take(entry)
            case Settled():
                shelf = self.shelf(entry.topic, entry.group, entry.queue_id)
                if shelf is not None:
                    for offset in entry.offsets:
                        taken = shelf.settle(offset, entry.pop_time_ms)
                        if taken is not None and not taken.left:
                            self.deadlines.discard(taken)
                    self._advance(shelf)
            case Changed():
                self._change(entry)
            case Locked():
                queue = self._lock(entry.topic, entry.group, entry.queue_id, entry.pop, now_ms)
                if entry.committed >= 0:
                    self._commit(entry.topic, entry.group, entry.queue_id, entry.committed)
                self._unlock_if_done(queue)
            case Cleared():
                self._clear(entry.topic, entry.group, entry.queue_id)
                self._offsets.commit(entry.group, entry.topic, entry.queue_id, entry.target)
            case Forgotten():
                self._forget(entry.topic, entry.group)
                if entry.topic is not None:
                    self._offsets.remove_topic(entry.topic)
                if entry.group is not None:
                    self._offsets.remove_group(entry.group)

    def _take(self, popped: Popped) -> None:
        shelf = self._make_shelf(popped.topic, popped.group, popped.queue_id)
        times = popped.pop_time_ms, popped.until_ms
        self._hold(shelf.take(popped.all_offsets(), popped.following, times))
        self._commit(popped.topic, popped.group, popped.queue_id, shelf.low)

    def _hold(self, taken: Taken) -> None:
        self.deadlines.add(taken, taken.until_ms)

    def _change(self, changed: Changed) -> bool:
        shelf = self.shelf(changed.topic, changed.group, changed.queue_id)
        if shelf is None:
            return False
        times = changed.pop_time_ms, changed.until_ms
        both = shelf.change(changed.offset, changed.old_pop_time_ms, times)
        if both is None:
            return False
        if not both[0].left:
            self.deadlines.discard(both[0])
        self._hold(both[1])
        return True

    def _lock(
        self, topic: str, group: str, queue_id: int, pop: OrderedPop, now_ms: int
    ) -> LockedQueue:
        queues = self._locked.setdefault((topic, group), {})
        queue = queues.get(queue_id)
        if queue is None:
            queue = queues[queue_id] = LockedQueue(topic, group, queue_id, pop)
        queue.pop = pop
        self._set_free(queue, now_ms)
        return queue

    def _set_free(self, queue: LockedQueue, now_ms: int) -> None:
        self.deadlines.discard(queue)
        free_ms = queue.pop.free_at_ms(now_ms)
        if free_ms > now_ms:
            self.deadlines.add(queue, free_ms)

    def _unlock_if_done(self, queue: LockedQueue) -> None:
        """Forget an ordered pop of which everything is acknowledged: nothing of it comes again."""
        if queue.pop.is_done:
            self._clear(queue.topic, queue.group, queue.queue_id)

    def _note_locked(self, queue: LockedQueue) -> None:
        topic, group, queue_id = queue.topic, queue.group, queue.queue_id
        committed = self._offsets.committed.get((topic, group), {}).get(queue_id, -1)
        pop = msgspec.structs.replace(queue.pop)  # as it is now: it may change before it is sealed
        pop.visible_ms = dict(pop.visible_ms)
        self._journal.note(Locked(topic, group, queue_id, committed, pop))

    def _clear(self, topic: str, group: str, queue_id: int) -> bool:
        shelf = self._shelves.get((topic, group), {}).pop(queue_id, None)
        if shelf is not None:
            self._drop(shelf)
        queue = self._locked.get((topic, group), {}).pop(queue_id, None)
        if queue is not None:
            self.deadlines.discard(queue)
        return shelf is not None or queue is not None

    def _forget(self, topic: str | None, group: str | None) -> None:
        for table in (self._shelves, self._locked):
            for pair in [p for p in table if p[0] == topic or p[1] == group]:
                for queue_id in list(table[pair]):
                    self._clear(*pair, queue_id)
                table.pop(pair, None)

    def _drop(self, shelf: Shelf) -> None:
        for taken in set(shelf.held.values()):
            self.deadlines.discard(taken)
        shelf.held.clear()

    def _make_shelf(self, topic: str, group: str, queue_id: int) -> Shelf:
        shelves = self._shelves.setdefault((topic, group), {})
        shelf = shelves.get(queue_id)
        if shelf is None:
            shelf = shelves[queue_id] = Shelf(topic, group, queue_id)
        return shelf

    def _advance(self, shelf: Shelf) -> None:
        """Commit what is done with; a shelf with nothing out is not needed any more."""
        topic, group, queue_id = shelf.topic, shelf.group, shelf.queue_id
        self._commit(topic, group, queue_id, shelf.low)
        if not shelf.held:
            shelves = self._shelves[topic, group]
            del shelves[queue_id]
            if not shelves:
                del self._shelves[topic, group]

    def _commit(self, topic: str, group: str, queue_id: int, offset: int) -> None:
        offsets = self._offsets
        if offsets.has_reset(group, topic, queue_id):
            return
        committed = offsets.committed.get((topic, group), {}).get(queue_id)
        if committed is None or committed < offset:
            offsets.commit(group, topic, queue_id, offset)


def _pops_of(shelf: Shelf) -> Iterator[tuple[int, int, list[int]]]:
    out: dict[Taken, list[int]] = {}
    for offset, taken in shelf.held.items():
        out.setdefault(taken, []).append(offset)
    for taken, offsets in out.items():
        yield taken.pop_time_ms, taken.until_ms, offsets


def contiguous(offsets: Sequence[int]) -> bool:
    """Tell whether offsets follow each other without a gap."""
    return offsets[-1] - offsets[0] == len(offsets) - 1
