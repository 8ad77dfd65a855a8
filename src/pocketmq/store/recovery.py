"""Finding every message again after a stop, clean or not.

Walks the commit log from the last checkpoint and builds the queues' entries anew. Damage is passed
over and reported: a record that fails its checks does not hide those behind it. The log ends after
its last sound record.
"""

from collections.abc import Callable, Mapping

import msgspec

from pocketmq.protocol.record_scan import RecordView, tags_code
from pocketmq.store.log_scan import SegmentScan
from pocketmq.store.queue_index import QueueIndex
from pocketmq.store.queues import Queues
from pocketmq.store.segments import Segment, Segments

TagRule = Callable[[RecordView], int]
"""Gives the code of a record of a topic that keeps something else in its index than the tag's hash.

It must be what was given when the record was appended.
"""

_SMALLEST = 91


class Damage(msgspec.Struct, frozen=True):
    """Bytes of the log that hold no sound record although sound ones follow."""

    start: int
    end: int


class Recovered(msgspec.Struct):
    """What a walk over the log came to."""

    start: int
    tail: int
    records: int = 0
    damage: list[Damage] = []
    torn: bool = False
    """Whether something behind the last sound record was cut off: a write that was not finished."""


class _Place(msgspec.Struct, gc=False):
    """What all records of one queue have in common."""

    topic: str
    queue_id: int
    deleted_before: int
    rule: TagRule | None
    queue: QueueIndex | None
    ending: bytes | None = None
    tag: int = 0

    def learn(self, text: bytes) -> int:
        """Give the tag code of properties, and remember it for others that end in the same way."""
        _, found, rest = text.rpartition(b"\x02TAGS\x01")
        self.ending, self.tag = (found + rest if found else None), tags_code(text)
        return self.tag


def recover(
    segments: Segments,
    start: int,
    queues: Queues,
    deleted: Mapping[str, int],
    rules: Mapping[str, TagRule],
) -> Recovered:
    """Index every sound record from `start` on; give where the log ends."""
    return _Recovery(queues, deleted, rules, start).run(segments)


class _Recovery:
    def __init__(
        self, queues: Queues, deleted: Mapping[str, int], rules: Mapping[str, TagRule], start: int
    ) -> None:
        self._queues = queues
        self._deleted = deleted
        self._rules = rules
        self._state = Recovered(start=start, tail=start)
        self._places: dict[tuple[bytes, int], _Place | None] = {}
        self._lost_bytes = 0

    def run(self, segments: Segments) -> Recovered:
        for segment in segments.from_position(self._state.start):
            self._walk(segment)
        return self._state

    def _walk(self, segment: Segment) -> None:
        state, places = self._state, self._places
        view, base = segment.view, segment.start
        scan = SegmentScan(segment, state.start)
        tail = state.tail
        for position, size, queue_id, queue_offset, _, topic, text in scan:
            if position != tail:
                self._lose(tail, position)
            key = topic, queue_id
            place = places[key] if key in places else self._find_place(topic, queue_id)
            tail = position + size
            if place is None:
                self._lose(position, tail)
            elif position < place.deleted_before:
                state.records += 1
            else:
                if place.rule is not None:
                    tag = place.rule(RecordView(view, position - base))
                elif place.ending is not None and text.endswith(place.ending):
                    tag = place.tag
                else:
                    tag = place.learn(text)
                queue = place.queue
                if queue is not None and queue_offset == queue.next_offset:
                    queue.append(position, size, tag)
                    state.records += 1
                elif self._place(place, queue_offset, position, size, tag):
                    state.records += 1
                else:
                    self._lose(position, tail)
            state.tail = tail
        if scan.blank_at is not None:
            if scan.blank_at > tail:
                self._lose(tail, scan.blank_at)
            state.tail = segment.end

    def _place(self, place: _Place, offset: int, position: int, size: int, tag: int) -> bool:
        """Index a record that is the first of its queue, or does not follow the last one."""
        losses = self._lost_bytes // _SMALLEST
        if place.queue is None:
            if offset > losses:
                return False
            place.queue = self._queues.make(place.topic, place.queue_id)
            self._queues.index.dirty.add(place.queue)
        return place.queue.place(offset, position, size, tag, losses=losses)

    def _find_place(self, topic: bytes, queue_id: int) -> _Place | None:
        try:
            name = topic.decode()
        except UnicodeDecodeError:
            place = None
        else:
            deleted, rule = self._deleted.get(name, 0), self._rules.get(name)
            queue = self._queues.get(name, queue_id)
            if queue is not None:
                self._queues.index.dirty.add(queue)
            place = _Place(name, queue_id, deleted, rule, queue)
        self._places[topic, queue_id] = place
        return place

    def _lose(self, start: int, end: int) -> None:
        self._lost_bytes += end - start
        damage = self._state.damage
        if damage and damage[-1].end == start:
            damage[-1] = Damage(damage[-1].start, end)
        else:
            damage.append(Damage(start, end))
