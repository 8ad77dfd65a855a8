"""Popped messages whose copies are in the log, but not the note in the journal that they were made.

Copies and note are written together. If a power cut leaves only the copies, the originals would be
copied once more; so whatever has a copy is done with. A copy names its original. Only copies behind
the pop count: a message can be popped again after a reset.
"""

from collections.abc import Iterator

from pocketmq.broker.core.log_origins import origin_of_popped
from pocketmq.broker.pop.journal import Changed, Entry, Journal, Popped
from pocketmq.broker.pop.shelf import Shelf, Taken
from pocketmq.broker.pop.shelves import Shelves
from pocketmq.model.names import dead_letter_topic
from pocketmq.protocol.pop_handles import TopicMark
from pocketmq.protocol.record_scan import RecordView
from pocketmq.store import MessageStore

_CHUNK = 512
_CHUNK_SIZE = 4 << 20


class Copied:
    """Finds copies while a broker's pops are recovered."""

    def __init__(self, store: MessageStore, position: int) -> None:
        """Take the position of the log from which on the journal is replayed."""
        self._store = store
        self._position = position
        self._places: dict[Taken, int] = {}  # where the journal tells of a pop
        self._copies: dict[str, dict[int, int]] = {}  # by topic: origin and position of copies

    def replayed(self, shelves: Shelves, entry: Entry, position: int) -> None:
        """Take note of an entry of the journal that was done again."""
        if not isinstance(entry, Popped | Changed):
            return
        shelf = shelves.find(entry.topic, entry.group, entry.queue_id)
        if shelf is not None:
            offset = (
                entry.offset if isinstance(entry, Changed) else next(iter(entry.all_offsets()), -1)
            )
            taken = shelf.held.get(offset)
            if taken is not None:
                self._places[taken] = position

    def settle(self, shelves: Shelves, journal: Journal) -> None:
        """Be done with the messages that have copies, and note it."""
        for shelf in [shelf for each in shelves.shelves.values() for shelf in each.values()]:
            for taken, offsets in self._copied_of(shelf).items():
                shelves.settle(shelf, taken.pop_time_ms, offsets)
                journal.note_settled(
                    shelf.topic, shelf.group, shelf.queue_id, taken.pop_time_ms, offsets
                )

    def _copied_of(self, shelf: Shelf) -> dict[Taken, list[int]]:
        found: dict[Taken, list[int]] = {}
        queue = self._store.queue(shelf.topic, shelf.queue_id)
        copies = [each for topic in _targets(shelf) if (each := self._copies_in(topic))]
        if queue is None or not copies:
            return found
        for offset, taken in shelf.held.items():
            position = queue.position(offset)
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


def _targets(shelf: Shelf) -> list[str]:
    """Return the topics copies of a shelf's messages may have gone to."""
    topics = [dead_letter_topic(shelf.group)]
    if TopicMark.of(shelf.topic) is not TopicMark.NORMAL:
        return [*topics, shelf.topic]
    marks = TopicMark.RETRY, TopicMark.RETRY_V2
    return [*topics, *(mark.real_topic(shelf.topic, shelf.group) for mark in marks)]
