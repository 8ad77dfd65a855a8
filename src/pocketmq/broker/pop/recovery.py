"""Saving and recovering the messages in flight: one document, and the journal since.

Recovery loads the document, then replays the journal from where the document ends. Replay is
idempotent: the document may already contain what the first entries say. Pure except for the journal
it reads.
"""

from collections.abc import Callable, Iterator

import msgspec

from pocketmq.broker.offsets.table import ConsumerOffsetTable
from pocketmq.broker.pop.journal import (
    Entry,
    Journal,
    MessagesPopped,
    MessagesSettled,
    PopsForgotten,
    QueueCleared,
    QueueLocked,
    VisibilityChanged,
)
from pocketmq.broker.pop.journal_repair import CopyFinder, bounded
from pocketmq.broker.pop.shelf import Shelf, Taken
from pocketmq.broker.pop.shelves import Shelves
from pocketmq.errors import BodyMalformed
from pocketmq.store import MessageStore


class SavedShelf(msgspec.Struct, array_like=True, gc=False):
    """A shelf as it is saved. The names of fields are part of the stored format."""

    topic: str
    group: str
    queue_id: int
    following: int
    pops: list[tuple[int, int, list[int]]]  # when, until when, what is still in flight


class SavedPops(msgspec.Struct, gc=False):
    """The saved document. The names of fields are part of the stored format."""

    journal: int = 0
    """Everything in the journal before this record is in here."""
    shelves: list[SavedShelf] = []
    locked: list[QueueLocked] = []


def snapshot(shelves: Shelves, journal: Journal) -> Callable[[], bytes]:
    """Capture everything; the function returned encodes the document, on any thread."""
    saved = SavedPops(
        journal.end,
        [
            SavedShelf(shelf.topic, shelf.group, shelf.queue_id, shelf.next, [*_pops_of(shelf)])
            for by_queue in shelves.shelves.values()
            for shelf in by_queue.values()
        ],
        [
            QueueLocked(
                queue.topic, queue.group, queue.queue_id, -1, msgspec.structs.replace(queue.pop)
            )
            for queues in shelves.locked.values()
            for queue in queues.values()
        ],
    )
    for locked in saved.locked:
        locked.pop.visible_ms = dict(locked.pop.visible_ms)
    return lambda: msgspec.msgpack.encode(saved)


def recover(
    shelves: Shelves,
    journal: Journal,
    store: MessageStore,
    document: bytes | None,
    now_ms: int,
) -> int:
    """Load what was saved, replay the journal since, and return the number of messages in flight.

    The journal may have new entries afterwards, to be sealed with those of the next iteration.
    Raises `BodyMalformed` for an invalid document.
    """
    saved = SavedPops()
    if document is not None:
        try:
            saved = msgspec.msgpack.decode(document, type=SavedPops)
        except msgspec.MsgspecError as error:
            raise BodyMalformed("what is kept of pops", str(error)) from error
    for each in saved.shelves:
        shelf = shelves.make(each.topic, each.group, each.queue_id)
        for pop_time_ms, until_ms, offsets in each.pops:
            shelves.hold(shelf.take(offsets, each.following, (pop_time_ms, until_ms)))
        shelf.sort()
    # What the journal commits is collected in a table of its own: offsets that were saved later
    # than the journal was written win, and a topic it names may have been deleted since.
    known, shelves.offsets = shelves.offsets, ConsumerOffsetTable()
    sent: set[tuple[str, str, int]] = set()
    copied = CopyFinder(store, journal.position_before(min(saved.journal, journal.end)))
    try:
        for locked in saved.locked:
            _do_again(shelves, locked, now_ms)
        for position, found_entry in journal.entries(min(saved.journal, journal.end)):
            entry = bounded(store, found_entry, position)
            _do_again(shelves, entry, now_ms)
            copied.replayed(shelves, entry, position)
            if type(entry) is QueueCleared:
                sent.add((entry.topic, entry.group, entry.queue_id))
    finally:
        found, shelves.offsets = shelves.offsets, known
    for (topic, group), by_queue in found.committed.items():
        for queue_id, offset in by_queue.items():
            if (topic, group, queue_id) in sent:
                known.commit(group, topic, queue_id, offset)
            else:
                shelves.commit(topic, group, queue_id, offset)
    copied.settle(shelves, journal)
    shelves.limit_waits(now_ms)
    return sum(len(s.held) for by_queue in shelves.shelves.values() for s in by_queue.values())


def _do_again(shelves: Shelves, entry: Entry, now_ms: int) -> None:
    match entry:
        case MessagesPopped():
            shelves.take(entry)
        case MessagesSettled():
            shelf = shelves.find(entry.topic, entry.group, entry.queue_id)
            if shelf is not None:
                shelves.settle(shelf, entry.pop_time_ms, entry.offsets)
        case VisibilityChanged():
            shelves.change(entry)
        case QueueLocked():
            if entry.committed >= 0:
                shelves.commit(entry.topic, entry.group, entry.queue_id, entry.committed)
            if entry.pop.offsets:
                shelves.lock(entry.topic, entry.group, entry.queue_id, entry.pop, now_ms)
            else:
                shelves.clear(entry.topic, entry.group, entry.queue_id)
        case QueueCleared():
            shelves.clear(entry.topic, entry.group, entry.queue_id)
            shelves.offsets.commit(entry.group, entry.topic, entry.queue_id, entry.target)
        case PopsForgotten():
            shelves.forget(entry.topic, entry.group)
            if entry.topic is not None:
                shelves.offsets.remove_topic(entry.topic)
            if entry.group is not None:
                shelves.offsets.remove_group(entry.group)


def _pops_of(shelf: Shelf) -> Iterator[tuple[int, int, list[int]]]:
    out: dict[Taken, list[int]] = {}
    for offset, taken in shelf.held.items():
        out.setdefault(taken, []).append(offset)
    for taken, offsets in out.items():
        yield taken.pop_time_ms, taken.until_ms, offsets
