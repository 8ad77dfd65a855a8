"""What the records of a log tell of its topics and queues, for a repair."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from pocketmq.model.names import is_system_topic
from pocketmq.store.check_values import WaitsFor
from pocketmq.store.log_scan import Sound

Place = tuple[int, int]
"""A record's first byte and the one behind its last."""


class LivedQueue(msgspec.Struct):
    """A queue as its records tell of it."""

    first: int
    """Its first offset, ..."""
    begins: int
    """... where that one lies in the log, ..."""
    ends: int
    """... and where the last one does."""
    last: int
    """The offset of the last record, ..."""
    before: int
    """... and of the one before it, if offsets are missing between them."""
    newest: Place
    anew: Place | None = None
    """A record with offset 0 that may be the first after a deletion."""


class Life(msgspec.Struct):
    """A topic as its records tell of it."""

    begins: int = 0
    """Its records before this position are of a topic of that name that was deleted."""
    queues: dict[int, LivedQueue] = {}
    misfits: list[Place] = []
    """Records whose offset cannot be: a bit of it was flipped."""

    def see(self, queue_id: int, offset: int, place: Place) -> None:
        """Take note of the next record."""
        known = self.queues.get(queue_id)
        if known is not None and known.anew is not None:
            known = self._decide(queue_id, known, known.anew, is_first=offset == 1)
        if known is None:
            self._begin(queue_id, offset, place)
        elif offset == 0:
            known.anew = place
        elif offset > known.last:
            known.before = known.last
            known.last, known.ends, known.newest = offset, place[0], place
        elif offset > known.before:  # the record before this one was too far ahead
            self.misfits.append(known.newest)
            known.last, known.ends, known.newest = offset, place[0], place
            known.before = offset - 1
        else:
            self.misfits.append(place)

    def finish(self, next_offsets: Mapping[int, int] | None) -> None:
        """Decide what no further record decides, by the next offsets that metadata knew."""
        for queue_id, known in list(self.queues.items()):
            if known.anew is not None:
                is_first = next_offsets is None or next_offsets.get(queue_id, 1) == 1
                self._decide(queue_id, known, known.anew, is_first=is_first)

    def _decide(
        self, queue_id: int, known: LivedQueue, place: Place, *, is_first: bool
    ) -> LivedQueue:
        """Settle whether a record with offset 0 began the queue anew, or has a damaged offset."""
        known.anew = None
        if not is_first:
            self.misfits.append(place)
            return known
        self._begin_anew(known.ends, place[0])
        return self._begin(queue_id, 0, place)

    def _begin(self, queue_id: int, offset: int, place: Place) -> LivedQueue:
        queue = LivedQueue(offset, place[0], place[0], offset, offset - 1, place)
        self.queues[queue_id] = queue
        return queue

    def _begin_anew(self, last: int, position: int) -> None:
        """Forget what came before a deletion, which lies between two records of one queue.

        Queues whose first records lie there, too, are taken for ones of the new topic.
        """
        self.queues = {
            number: queue
            for number, queue in self.queues.items()
            if queue.first == 0 and queue.begins > last
        }
        self.begins = min([position, *(queue.begins for queue in self.queues.values())])


def noting_waits(
    records: Iterable[Sound], waits_for: WaitsFor, counts: dict[str, int]
) -> Iterator[Sound]:
    """Pass records on; note in `counts` how many queues those that wait need, by topic."""
    system: dict[bytes, bool] = {}
    for record in records:
        name, text = record[5:7]
        if name not in system:
            system[name] = is_system_topic(name.decode("utf-8", "replace"))
        place = waits_for(text) if system[name] else None
        if place is not None:
            topic, queue_id = place
            counts[topic] = max(counts.get(topic, 0), queue_id + 1)
        yield record


def read_lives(
    records: Iterable[Sound], next_offsets: Mapping[str, Mapping[int, int]] | None
) -> dict[str, Life]:
    """Find out which queues there are, and where each begins.

    `next_offsets` are those that metadata knew by topic and queue, None if there is no metadata.
    """
    lives: dict[str, Life] = {}
    for position, size, queue_id, offset, _, topic, _ in records:
        name = topic.decode("utf-8", "replace")
        lives.setdefault(name, Life()).see(queue_id, offset, (position, position + size))
    for name, life in lives.items():
        life.finish(None if next_offsets is None else next_offsets.get(name, {}))
    return lives
