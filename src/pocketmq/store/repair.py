"""Making a store usable again whose metadata, queue indexes or records are damaged.

Metadata and indexes are moved aside, never deleted. New metadata takes over what can be read of
the old, with a checkpoint at the very beginning of the log: the next start reads all of it, as
after a crash, and rebuilds every queue. Topics whose records begin in the middle, because older
files are gone, continue at that offset. Damaged records stay where they are; their offsets are not
reused for other messages. If the metadata cannot be read at all, what only it held is lost: the
groups' settings and offsets, users, rules, and which topics had been deleted; topics and queues
are then inferred from the records (`TopicLife`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from pocketmq.errors import StoreCorrupt
from pocketmq.model import TopicConfig
from pocketmq.model.names import is_system_topic
from pocketmq.protocol import RecordView, encode_body
from pocketmq.protocol.inner_batch import batch_size
from pocketmq.store.check_metadata import SeenMetadata, read_metadata
from pocketmq.store.check_values import NO_FORMATS, Findings, StoredFormats, WaitsFor
from pocketmq.store.checking import LogReader, locked
from pocketmq.store.directory import METADATA
from pocketmq.store.disk import OWNER_ONLY_FOLDER, Disk, store_error, sync_folder
from pocketmq.store.log_scan import Sound
from pocketmq.store.metadata import Metadata
from pocketmq.store.recovery import REPAIR_KIND, RepairNote

RecordSpan = tuple[int, int]
"""A record's first byte and the one behind its last."""


class LivedQueue(msgspec.Struct):
    """A queue as its records show it."""

    first: int
    """Its first offset, ..."""
    begins: int
    """... where that one lies in the log, ..."""
    ends: int
    """... and where the last one does."""
    last: int
    """The offset of the last record, of an inner batch that of its last message, ..."""
    before: int
    """... and of the one before it, if offsets are missing between them."""
    newest: RecordSpan
    anew: RecordSpan | None = None
    """A record with offset 0 that may be the first after a deletion, ..."""
    anew_count: int = 1
    """... and how many messages it holds."""


class TopicLife(msgspec.Struct):
    """A topic as its records show it, through deletions and new starts."""

    begins: int = 0
    """Its records before this position are of a topic of that name that was deleted."""
    queues: dict[int, LivedQueue] = {}
    misfits: list[RecordSpan] = []
    """Records whose offset cannot be: a bit of it was flipped."""

    def see(self, queue_id: int, offset: int, place: RecordSpan, count: int = 1) -> None:
        """Note the next record, which holds `count` messages."""
        known, last = self.queues.get(queue_id), offset + count - 1
        if known is not None and known.anew is not None:
            is_first = offset == known.anew_count
            known = self._decide(queue_id, known, known.anew, is_first=is_first)
        if known is None:
            self._begin(queue_id, offset, place, count)
        elif offset == 0:
            known.anew, known.anew_count = place, count
        elif offset > known.last:
            known.before = known.last
            known.last, known.ends, known.newest = last, place[0], place
        elif offset > known.before:  # the record before this one was too far ahead
            self.misfits.append(known.newest)
            known.last, known.ends, known.newest = last, place[0], place
            known.before = offset - 1
        else:
            self.misfits.append(place)

    def finish(self, next_offsets: Mapping[int, int] | None) -> None:
        """Decide what no further record decides, by the next offsets that metadata knew."""
        for queue_id, known in list(self.queues.items()):
            if known.anew is not None:
                count = known.anew_count
                is_first = next_offsets is None or next_offsets.get(queue_id, count) == count
                self._decide(queue_id, known, known.anew, is_first=is_first)

    def _decide(
        self, queue_id: int, known: LivedQueue, place: RecordSpan, *, is_first: bool
    ) -> LivedQueue:
        """Settle whether a record with offset 0 restarted the queue or has a damaged offset."""
        known.anew = None
        if not is_first:
            self.misfits.append(place)
            return known
        self._begin_anew(known.ends, place[0])
        return self._begin(queue_id, 0, place, known.anew_count)

    def _begin(self, queue_id: int, offset: int, place: RecordSpan, count: int) -> LivedQueue:
        last = offset + count - 1
        queue = LivedQueue(offset, place[0], place[0], last, offset - 1, place)
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
    records: Iterable[Sound],
    next_offsets: Mapping[str, Mapping[int, int]] | None,
    view: Callable[[Sound], RecordView],
) -> dict[str, TopicLife]:
    """Find out which queues there are, and where each begins.

    `next_offsets` are those that metadata knew by topic and queue, None if there is no metadata.
    `view` returns the fields of the record that was read last.
    """
    lives: dict[str, TopicLife] = {}
    for record in records:
        position, size, queue_id, offset, _, topic, _ = record
        count = max(batch_size(view(record)), 1)
        life = lives.setdefault(topic.decode("utf-8", "replace"), TopicLife())
        life.see(queue_id, offset, (position, position + size), count)
    for name, life in lives.items():
        life.finish(None if next_offsets is None else next_offsets.get(name, {}))
    return lives


class Repaired(msgspec.Struct, frozen=True):
    """What was done."""

    kept_in: str
    """Where the files are now that were replaced."""
    topics: list[str]
    """Topics that were set up again, with as many queues as messages are in or wait for."""
    kept_settings: bool
    """Whether topics, groups, offsets and users are as they were."""


def repair_store(path: Path, formats: StoredFormats = NO_FORMATS) -> Repaired:
    """Rebuild what leads to the log. Raises `StoreInUse`, `StoreCorrupt` if the log has a hole."""
    with locked(path):
        findings = Findings()
        seen = read_metadata(path / METADATA, findings, formats)
        reader = LogReader(Disk(path))
        waiting: dict[str, int] = {}  # queues that messages wait for, by topic
        try:
            if reader.holes():
                start, end = reader.holes()[0]
                raise StoreCorrupt(
                    f"bytes {start} to {end} of the commit log are missing: put the file back, or "
                    "move the earlier files away (their messages are lost)"
                )
            if seen is None:
                records = noting_waits(reader.read(), formats.waits_for, waiting)
                lives = read_lives(records, None, reader.view)
            else:
                lives = read_lives(reader.read(), _next_offsets(seen), reader.view)
        finally:
            reader.close()
        kept_in = _move_aside(path)
        made = _topics(lives, waiting) if seen is None else {}
        _write(path, reader, lives, seen, made)
        return Repaired(str(kept_in), sorted(made), seen is not None)


def _next_offsets(seen: SeenMetadata) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for _, topic, queue_id, _, following in seen.queues:
        found.setdefault(topic, {})[queue_id] = following
    return found


def _move_aside(path: Path) -> Path:
    number = 1
    while (aside := path / f"before-repair-{number}").exists():
        number += 1
    try:
        aside.mkdir(mode=OWNER_ONLY_FOLDER)
        for name in (METADATA, f"{METADATA}-wal", f"{METADATA}-shm", "index"):
            if (path / name).exists():
                (path / name).rename(aside / name)
        sync_folder(path)
    except OSError as error:
        raise store_error(error, 0) from error
    return aside


def _write(
    path: Path,
    reader: LogReader,
    lives: dict[str, TopicLife],
    seen: SeenMetadata | None,
    made: dict[str, int],
) -> None:
    known = set() if seen is None else {topic for _, topic, *_ in seen.queues}
    deleted = {} if seen is None else dict(seen.deleted)
    queues = []
    for topic, life in lives.items():
        if seen is not None and topic not in known and life.begins < seen.position:
            deleted.setdefault(topic, seen.position)  # the last checkpoint knew nothing of it
            continue
        if life.begins > deleted.get(topic, 0):
            deleted[topic] = life.begins
        if topic not in deleted:
            queues += [(topic, number, queue.first) for number, queue in life.queues.items()]
    metadata = Metadata(path / METADATA)
    try:
        metadata.begin_anew(reader.first, queues, deleted)
        documents = {topic: encode_body(_config(topic, count)) for topic, count in made.items()}
        metadata.save_documents("topic", dict(documents))
        if seen is not None:
            _take_over(metadata, seen)
        note = msgspec.json.encode(_note(reader, lives, seen))
        metadata.save_documents(REPAIR_KIND, {REPAIR_KIND: note})
    finally:
        metadata.close()


def _take_over(metadata: Metadata, seen: SeenMetadata) -> None:
    """Keep what could be read of the old metadata, except what is rebuilt."""
    by_kind: dict[str, dict[str, bytes | None]] = {}
    for kind, key, value in seen.documents:
        by_kind.setdefault(kind, {})[key] = value
    for kind, documents in by_kind.items():
        metadata.save_documents(kind, documents)
    metadata.save_consumer_offsets(seen.offsets)
    modulus = seen.numbers.get("key_modulus")
    if modulus is not None:
        metadata.set_number("key_modulus", modulus)


def _note(reader: LogReader, lives: dict[str, TopicLife], seen: SeenMetadata | None) -> RepairNote:
    """Return what the next start and later checks must know of the damage."""
    damage = [*reader.damage, *(place for life in lives.values() for place in life.misfits)]
    if seen is None:
        return RepairNote(reader.first, damage=damage)
    tail = min(seen.position, reader.end)
    if reader.tail < tail:
        damage.append((reader.tail, tail))
    ends = [
        (topic, queue_id, following)
        for _, topic, queue_id, _, following in seen.queues
        if topic not in seen.deleted
    ]
    return RepairNote(reader.first, tail, ends, damage)


def _topics(lives: dict[str, TopicLife], waiting: dict[str, int]) -> dict[str, int]:
    """Return the queues of topics to be set up again; the broker's own it makes for itself."""
    counts = {topic: max(life.queues, default=0) + 1 for topic, life in lives.items()}
    for topic, count in waiting.items():
        counts[topic] = max(counts.get(topic, 0), count)
    return {topic: count for topic, count in counts.items() if not is_system_topic(topic)}


def _config(topic: str, count: int) -> TopicConfig:
    return TopicConfig(topic_name=topic, read_queue_nums=count, write_queue_nums=count, perm=6)
