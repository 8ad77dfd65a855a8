"""The journal of pops checked against the log: what a power cut can tear apart.

A power cut can take messages and leave a later record of the journal. The offsets of the lost
messages are reused for other messages then, of which the journal knows nothing. So an entry counts
only for messages that lie before it in the log (`bounded`); an entry that a message was copied
counts only if the copy is there, else the original is still in flight.

The other way round, it can leave copies without the entry that they were made, although both are
written together. The originals would be copied once more; so a message that has a copy is done
(`CopyFinder`). A copy names its original. Only copies behind the pop count: a message can be popped
again after a reset.
"""

from collections.abc import Iterator

import msgspec

from pocketmq.broker.core.log_origins import origin_of_popped
from pocketmq.broker.pop import changes
from pocketmq.broker.pop.all_in_flight import AllInFlight
from pocketmq.broker.pop.in_flight import QueueInFlight, Taken
from pocketmq.broker.pop.journal import Journal
from pocketmq.model.names import dead_letter_topic
from pocketmq.protocol import RecordView
from pocketmq.protocol.handles import TopicMark
from pocketmq.store import MessageStore

_CHUNK = 512
_CHUNK_SIZE = 4 << 20


def bounded(store: MessageStore, entry: changes.Entry, position: int) -> changes.Entry:
    """Return an entry of the journal, found at a position of the log, without what was lost."""
    match entry:
        case changes.MessagesPopped():
            following = _end(store, entry, entry.following, position)
            if following < entry.following:
                offsets = [offset for offset in entry.all_offsets() if offset < following]
                return msgspec.structs.replace(entry, following=following, offsets=offsets)
        case changes.QueueLocked():
            last = max(entry.pop.offsets, default=-1) + 1
            if _end(store, entry, last, position) < last:  # all of it is redelivered
                entry.pop = msgspec.structs.replace(entry.pop, offsets=[])
            entry.committed = _end(store, entry, entry.committed, position)
        case changes.MessagesSettled():
            if entry.copies:
                kept = [
                    offset
                    for offset, copy in zip(entry.offsets, entry.copies, strict=False)
                    if _has_copy(store, entry, offset, copy)
                ]
                return msgspec.structs.replace(entry, offsets=kept)
        case changes.QueueCleared():
            entry.target = _end(store, entry, entry.target, position)
    return entry


def _end(
    store: MessageStore,
    entry: changes.MessagesPopped | changes.QueueLocked | changes.QueueCleared,
    offset: int,
    position: int,
) -> int:
    """Return an offset, or where the queue ended at the position if that was before it."""
    queue = store.queue(entry.topic, entry.queue_id)
    if queue is None:
        return min(offset, 0)
    if offset <= queue.min_offset:
        return offset
    last = queue.position(offset - 1)
    if last is not None and last < position:
        return offset
    return min(offset, queue.first_behind(position))


def _has_copy(
    store: MessageStore, settled: changes.MessagesSettled, offset: int, copy: int
) -> bool:
    """Return whether the copy of a message is in the log, or was until it grew too old."""
    queue = store.queue(settled.topic, settled.queue_id)
    position = None if queue is None else store.place_of(queue, offset)
    if copy < store.log.first or position is None:
        return True
    record = store.record_at(copy)
    return record is not None and RecordView(
        record, 0
    ).prepared_transaction_offset == origin_of_popped(position)


class CopyFinder:
    """Finds copies while a broker's pops are recovered."""

    def __init__(self, store: MessageStore, position: int) -> None:
        """Take the position of the log from which on the journal is replayed."""
        self._store = store
        self._position = position
        self._places: dict[Taken, int] = {}  # where the journal's entry of a pop lies
        self._copies: dict[str, dict[int, int]] = {}  # by topic: origin and position of copies

    def replayed(self, all_in_flight: AllInFlight, entry: changes.Entry, position: int) -> None:
        """Take note of an entry of the journal that was done again."""
        if not isinstance(entry, changes.MessagesPopped | changes.VisibilityChanged):
            return
        in_flight = all_in_flight.find(entry.topic, entry.group, entry.queue_id)
        if in_flight is not None:
            offset = (
                entry.offset
                if isinstance(entry, changes.VisibilityChanged)
                else next(iter(entry.all_offsets()), -1)
            )
            taken = in_flight.held.get(offset)
            if taken is not None:
                self._places[taken] = position

    def settle(self, all_in_flight: AllInFlight, journal: Journal) -> None:
        """Settle the messages that have copies, and note it in the journal."""
        for in_flight in [
            in_flight for each in all_in_flight.by_group.values() for in_flight in each.values()
        ]:
            for taken, offsets in self._copied_of(in_flight).items():
                all_in_flight.settle(in_flight, taken.pop_time_ms, offsets)
                journal.note_settled(
                    in_flight.topic, in_flight.group, in_flight.queue_id, taken.pop_time_ms, offsets
                )

    def _copied_of(self, in_flight: QueueInFlight) -> dict[Taken, list[int]]:
        found: dict[Taken, list[int]] = {}
        queue = self._store.queue(in_flight.topic, in_flight.queue_id)
        copies = [each for topic in _targets(in_flight) if (each := self._copies_in(topic))]
        if queue is None or not copies:
            return found
        for offset, taken in in_flight.held.items():
            position = self._store.place_of(queue, offset)
            if position is None:
                continue
            origin, since = origin_of_popped(position), self._places.get(taken, self._position)
            if any(each.get(origin, -1) > since for each in copies):
                found.setdefault(taken, []).append(offset)
        return found

    def _copies_in(self, topic: str) -> dict[int, int]:
        """Return the position of the latest copy of each original in a topic."""
        copies = self._copies.get(topic)
        if copies is None:
            copies = self._copies[topic] = dict(self._read(topic))
        return copies

    def _read(self, topic: str) -> Iterator[tuple[int, int]]:
        queue = self._store.queue(topic, 0)
        if queue is None:
            return
        offset = queue.first_behind(self._position)
        while offset < queue.next_offset:
            read = self._store.read(queue, offset, _CHUNK, _CHUNK_SIZE)
            for piece in read.pieces:
                record = RecordView(piece, 0)
                yield record.prepared_transaction_offset, record.commit_log_offset
            offset = max(read.next_offset, offset + 1)


def _targets(in_flight: QueueInFlight) -> list[str]:
    """Return the topics copies of messages in flight may have gone to."""
    topics = [dead_letter_topic(in_flight.group)]
    if TopicMark.of(in_flight.topic) is not TopicMark.NORMAL:
        return [*topics, in_flight.topic]
    marks = TopicMark.RETRY, TopicMark.RETRY_V2
    return [*topics, *(mark.real_topic(in_flight.topic, in_flight.group) for mark in marks)]
