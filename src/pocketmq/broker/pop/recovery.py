"""Saving and recovering the messages in flight: one document, and the journal since.

Recovery loads the document, then replays the journal from where the document ends. Replay is
idempotent: the document may already contain what the first entries say. Pure except for the journal
it reads.
"""

from collections.abc import Callable, Iterator

import msgspec

from pocketmq.broker.offsets.table import ConsumerOffsetTable
from pocketmq.broker.pop import changes
from pocketmq.broker.pop.all_in_flight import AllInFlight
from pocketmq.broker.pop.in_flight import QueueInFlight, Taken
from pocketmq.broker.pop.journal import Journal
from pocketmq.broker.pop.journal_repair import CopyFinder, bounded
from pocketmq.errors import BodyMalformed
from pocketmq.store import MessageStore


class SavedQueue(msgspec.Struct, array_like=True, gc=False):
    """What one group has in flight of one queue, as it is saved: a list, in this order."""

    topic: str
    group: str
    queue_id: int
    following: int
    pops: list[tuple[int, int, list[int]]]  # when, until when, what is still in flight


class SavedPops(msgspec.Struct, gc=False):
    """The saved document. The names of fields are part of the stored format."""

    journal: int = 0
    """Everything in the journal before this record is in here."""
    queues: list[SavedQueue] = msgspec.field(name="shelves", default_factory=list)
    locked: list[changes.QueueLocked] = []


def snapshot(all_in_flight: AllInFlight, journal: Journal) -> Callable[[], bytes]:
    """Capture everything; the function returned encodes the document, on any thread."""
    saved = SavedPops(
        journal.end,
        [
            SavedQueue(
                in_flight.topic,
                in_flight.group,
                in_flight.queue_id,
                in_flight.next,
                [*_pops_of(in_flight)],
            )
            for by_queue in all_in_flight.by_group.values()
            for in_flight in by_queue.values()
        ],
        [
            changes.QueueLocked(
                queue.topic, queue.group, queue.queue_id, -1, msgspec.structs.replace(queue.pop)
            )
            for queues in all_in_flight.locked.values()
            for queue in queues.values()
        ],
    )
    for locked in saved.locked:
        locked.pop.visible_ms = dict(locked.pop.visible_ms)
    return lambda: msgspec.msgpack.encode(saved)


def recover(
    all_in_flight: AllInFlight,
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
            raise BodyMalformed("snapshot of pops", str(error)) from error
    for each in saved.queues:
        in_flight = all_in_flight.make(each.topic, each.group, each.queue_id)
        for pop_time_ms, until_ms, offsets in each.pops:
            all_in_flight.hold(in_flight.take(offsets, each.following, (pop_time_ms, until_ms)))
        in_flight.sort()
    # What the journal commits is collected in a table of its own: offsets that were saved later
    # than the journal was written win, and a topic it names may have been deleted since.
    known, all_in_flight.offsets = all_in_flight.offsets, ConsumerOffsetTable()
    sent: set[tuple[str, str, int]] = set()
    copied = CopyFinder(store, journal.position_before(min(saved.journal, journal.end)))
    try:
        for locked in saved.locked:
            _do_again(all_in_flight, locked, now_ms)
        for position, found_entry in journal.entries(min(saved.journal, journal.end)):
            entry = bounded(store, found_entry, position)
            _do_again(all_in_flight, entry, now_ms)
            copied.replayed(all_in_flight, entry, position)
            if type(entry) is changes.QueueCleared:
                sent.add((entry.topic, entry.group, entry.queue_id))
    finally:
        found, all_in_flight.offsets = all_in_flight.offsets, known
    for (topic, group), by_queue in found.committed.items():
        for queue_id, offset in by_queue.items():
            if (topic, group, queue_id) in sent:
                known.commit(group, topic, queue_id, offset)
            else:
                all_in_flight.commit(topic, group, queue_id, offset)
    copied.settle(all_in_flight, journal)
    all_in_flight.limit_waits(now_ms)
    return sum(
        len(s.held) for by_queue in all_in_flight.by_group.values() for s in by_queue.values()
    )


def _do_again(all_in_flight: AllInFlight, entry: changes.Entry, now_ms: int) -> None:
    match entry:
        case changes.MessagesPopped():
            all_in_flight.take(entry)
        case changes.MessagesSettled():
            in_flight = all_in_flight.find(entry.topic, entry.group, entry.queue_id)
            if in_flight is not None:
                all_in_flight.settle(in_flight, entry.pop_time_ms, entry.offsets)
        case changes.VisibilityChanged():
            all_in_flight.change(entry)
        case changes.QueueLocked():
            if entry.committed >= 0:
                all_in_flight.commit(entry.topic, entry.group, entry.queue_id, entry.committed)
            if entry.pop.offsets:
                all_in_flight.lock(entry.topic, entry.group, entry.queue_id, entry.pop, now_ms)
            else:
                all_in_flight.clear(entry.topic, entry.group, entry.queue_id)
        case changes.QueueCleared():
            all_in_flight.clear(entry.topic, entry.group, entry.queue_id)
            all_in_flight.offsets.commit(entry.group, entry.topic, entry.queue_id, entry.target)
        case changes.PopsForgotten():
            all_in_flight.forget(entry.topic, entry.group)
            if entry.topic is not None:
                all_in_flight.offsets.remove_topic(entry.topic)
            if entry.group is not None:
                all_in_flight.offsets.remove_group(entry.group)


def _pops_of(in_flight: QueueInFlight) -> Iterator[tuple[int, int, list[int]]]:
    out: dict[Taken, list[int]] = {}
    for offset, taken in in_flight.held.items():
        out.setdefault(taken, []).append(offset)
    for taken, offsets in out.items():
        yield taken.pop_time_ms, taken.until_ms, offsets
