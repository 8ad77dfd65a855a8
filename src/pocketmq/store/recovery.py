"""Recovery: finding every message again after a stop, clean or not.

The order of `take_up` matters:

1. Load the log's files, then the free index space and the queues as the last checkpoint left them.
   Index entries written after the checkpoint are ignored: a power cut may have torn them.
2. Scan the log from the checkpoint on and rebuild the queues' entries. The log is the truth, the
   index is derived from it; a record counts only if all its checks pass (see `log_scan`).
3. Follow what a repair has noted, which may move the ends of log and queues.
4. Cut the log after its last sound record (`CommitLog.begin`), before anything is appended. A torn
   tail is zeroed and synced: otherwise a later crash could leave a sound-looking old record
   behind new ones, and the next recovery would accept it.
5. Only then correct the positions of deleted topics, which must not lie beyond the new end.

Damage in the middle is skipped and reported: a record that fails its checks does not hide those
behind it. A torn tail is not damage but a write that did not finish.
"""

import logging
from collections.abc import Callable, Mapping

import msgspec

from pocketmq.errors import StoreCorrupt
from pocketmq.protocol import RecordView, tags_code
from pocketmq.protocol.batch import ENTRY_OVERHEAD
from pocketmq.protocol.inner_batch import INNER_BATCH, batch_size
from pocketmq.protocol.record_scan import FLAG_BYTE
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.inner_batches import place_batch_entries
from pocketmq.store.log_scan import SegmentScan
from pocketmq.store.metadata import LOG_FIRST, Metadata
from pocketmq.store.queue_index import QueueIndex
from pocketmq.store.queues import Queues
from pocketmq.store.segments import Segment, Segments

TagRule = Callable[[RecordView], int]
"""Returns the tag code of a record, for a topic whose index holds another code than the tag's hash.

It must be the code with which the record was appended.
"""

_SMALLEST = ENTRY_OVERHEAD
"""Bytes of the log that a lost message has taken at least: it may have been in an inner batch."""
REPAIR_KIND = "repair"
"""The kind of the document, and its only key, in which a repair leaves word for the next start."""
log = logging.getLogger("pocketmq.store")


class Damage(msgspec.Struct, frozen=True):
    """Bytes of the log that hold no sound record although sound ones follow."""

    start: int
    end: int


class Recovered(msgspec.Struct):
    """The result of a scan of the log."""

    start: int
    tail: int
    records: int = 0
    damage: list[Damage] = []
    torn: bool = False
    """Whether something behind the last sound record was cut off: a write that was not finished."""


class RepairNote(msgspec.Struct, frozen=True):
    """What a repair found, for the start that follows it and for later checks."""

    start: int
    """Where the next start begins to walk over the log."""
    tail: int = 0
    """The log ends here at least, though records before may be damaged."""
    ends: list[tuple[str, int, int]] = []
    """Topic, queue id and next offset of queues: lost messages at their ends keep their offsets."""
    damage: list[tuple[int, int]] = []
    """Bytes of the log that are known to hold no sound record."""

    def knows(self, start: int, end: int) -> bool:
        """Return whether damage between two positions was there at the time of the repair."""
        return any(low <= start and end <= high for low, high in self.damage)


def read_repair_note(document: bytes) -> RepairNote:
    """Read the document. Raises `msgspec.MsgspecError` if it is not a valid one."""
    return msgspec.json.decode(document, type=RepairNote)


class _QueueFacts(msgspec.Struct, gc=False):
    """What all records of one queue have in common, cached for the scan."""

    topic: str
    queue_id: int
    deleted_before: int
    rule: TagRule | None
    queue: QueueIndex | None
    ending: bytes | None = None
    tag: int = 0

    def learn(self, text: bytes) -> int:
        """Return the tag code of properties, and cache it for others that end in the same way."""
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
    """Index every sound record from `start` on; return where the log ends."""
    return _Recovery(queues, deleted, rules, start).run(segments)


class _Recovery:
    def __init__(
        self, queues: Queues, deleted: Mapping[str, int], rules: Mapping[str, TagRule], start: int
    ) -> None:
        self._queues = queues
        self._deleted = deleted
        self._rules = rules
        self._state = Recovered(start=start, tail=start)
        self._places: dict[tuple[bytes, int], _QueueFacts | None] = {}
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
                queue, count = place.queue, 0
                if view[position - base + FLAG_BYTE] & INNER_BATCH:
                    count = batch_size(RecordView(view, position - base))
                if not count and queue is not None and queue_offset == queue.next_offset:
                    queue.append(position, size, tag)
                    state.records += 1
                elif self._place(place, queue_offset, position, size, tag, count):
                    state.records += 1
                else:
                    self._lose(position, tail)
            state.tail = tail
        if scan.blank_at is not None:
            if scan.blank_at > tail:
                self._lose(tail, scan.blank_at)
            state.tail = segment.end

    def _place(  # noqa: PLR0917 - an entry's fields
        self, place: _QueueFacts, offset: int, position: int, size: int, tag: int, count: int
    ) -> bool:
        """Index a batch, or a record that is its queue's first or does not follow the last one.

        `count` is the number of messages in an inner batch, 0 for a plain record.
        """
        losses = self._lost_bytes // _SMALLEST
        if place.queue is None:
            if offset > losses:
                return False
            place.queue = self._queues.make(place.topic, place.queue_id)
            self._queues.index.dirty.add(place.queue)
        if count:
            entry = position, size, tag
            return place_batch_entries(place.queue, offset, count, entry, losses=losses)
        return place.queue.place(offset, position, size, tag, losses=losses)

    def _find_place(self, topic: bytes, queue_id: int) -> _QueueFacts | None:
        try:
            name = topic.decode()
        except UnicodeDecodeError:
            place = None
        else:
            deleted, rule = self._deleted.get(name, 0), self._rules.get(name)
            queue = self._queues.get(name, queue_id)
            if queue is not None:
                self._queues.index.dirty.add(queue)
            place = _QueueFacts(name, queue_id, deleted, rule, queue)
        self._places[topic, queue_id] = place
        return place

    def _lose(self, start: int, end: int) -> None:
        self._lost_bytes += end - start
        damage = self._state.damage
        if damage and damage[-1].end == start:
            damage[-1] = Damage(damage[-1].start, end)
        else:
            damage.append(Damage(start, end))


def take_up(
    commit_log: CommitLog, queues: Queues, metadata: Metadata, tag_rules: Mapping[str, TagRule]
) -> Recovered:
    """Load the last checkpoint and recover what came after it.

    Raises `StoreCorrupt` if files are missing.
    """
    segments = commit_log.segments
    segments.load()
    free = [row[:3] for row in metadata.extents_of(0)]
    queues.files.load(metadata.number("index_end") or 0, free)
    deleted = metadata.deleted_topics()
    queues.load(deleted)
    start = metadata.number("position") or 0
    if not segments.first <= start <= segments.end:
        raise StoreCorrupt(
            f"the commit log holds bytes {segments.first} to {segments.end}, but a checkpoint "
            f"was made at {start}: files are missing"
        )
    recovered = recover(segments, start, queues, deleted, tag_rules)
    _follow_repair(recovered, segments, queues, metadata, deleted)
    for damage in recovered.damage:
        log.warning(
            "commit log is damaged: bytes %d to %d; the messages in them are lost",
            damage.start,
            damage.end,
        )
    recovered.torn = commit_log.begin(recovered.tail, start)
    for topic, position in deleted.items():
        if position > recovered.tail:  # new records will lie where its lost ones lay
            metadata.delete_topic(topic, recovered.tail)
    queues.index.first_kept = segments.first
    _look_for_missing(commit_log, metadata)
    return recovered


def _look_for_missing(commit_log: CommitLog, metadata: Metadata) -> None:
    """Warn if files at the beginning of the log are gone that retention has not deleted."""
    first, known = commit_log.first, metadata.number(LOG_FIRST)
    commit_log.deleted_until = first if known is None else min(known, first)
    if commit_log.deleted_until < first:
        log.warning(
            "commit log files are missing: bytes=%d first_kept=%d; they were not deleted by "
            "retention, and their messages are lost; put the files back, or run "
            "`pocketmq store check --repair` to accept the loss",
            first - commit_log.deleted_until, first,
        )  # fmt: skip


def _follow_repair(
    recovered: Recovered,
    segments: Segments,
    queues: Queues,
    metadata: Metadata,
    deleted: Mapping[str, int],
) -> None:
    """Let log and queues end where they ended before a repair, though records there are damaged.

    Otherwise new messages would get offsets that consumers have committed already. Only until the
    first checkpoint after the repair, which knows it all.
    """
    documents = dict(metadata.documents(REPAIR_KIND))
    if REPAIR_KIND not in documents:
        return
    try:
        note = read_repair_note(documents[REPAIR_KIND])
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(f"meta.sqlite: what a repair has noted is damaged: {error}") from error
    if recovered.start != note.start:
        return
    if recovered.tail < note.tail <= segments.end:
        recovered.damage.append(Damage(recovered.tail, note.tail))
        recovered.tail = note.tail
    for topic, queue_id, following in note.ends:
        if following > 0 and deleted.get(topic, -1) < note.tail:  # not deleted since the repair
            queue = queues.make(topic, queue_id)
            if queue.next_offset < following:
                queue.lose_until(following, recovered.tail)
                queues.index.dirty.add(queue)
