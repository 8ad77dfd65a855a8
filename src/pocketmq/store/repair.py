"""Making a store usable again whose metadata or queue indexes are lost: the log holds it all.

The files that are wrong are moved aside, never deleted. What remains is a checkpoint at the very
beginning of the log: the next start walks over all of it, as after a crash, and builds every queue
anew. Topics whose records begin in the middle, because older files are gone, go on at that offset.
What only the metadata knew is gone with it: how groups were set up and how far they were, users,
rules, and which topics had been deleted.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from pocketmq.errors import StoreCorrupt
from pocketmq.model.names import is_system_topic
from pocketmq.model.topic_config import TopicConfig
from pocketmq.protocol.json_values import encode_body
from pocketmq.store.check_metadata import SeenMetadata, read_metadata
from pocketmq.store.check_report import Findings
from pocketmq.store.checking import LogReader, locked
from pocketmq.store.directory import METADATA
from pocketmq.store.disk import Disk, store_error, sync_folder
from pocketmq.store.log_scan import Sound
from pocketmq.store.metadata import Metadata


class SeenQueue(msgspec.Struct):
    """A queue as its records tell of it."""

    first: int
    """Its first offset, ..."""
    begins: int
    """... where that one lies in the log, ..."""
    ends: int
    """... and where the last one does."""


class Life(msgspec.Struct):
    """A topic as its records tell of it."""

    begins: int = 0
    """Its records before this position are of a topic of that name that was deleted."""
    queues: dict[int, SeenQueue] = {}

    def see(self, queue_id: int, offset: int, position: int) -> None:
        """Take note of a record; one with offset 0 may be the first after a deletion."""
        known = self.queues.get(queue_id)
        if known is not None and offset == 0:
            self._begin_anew(known.ends, position)
            known = None
        if known is None:
            self.queues[queue_id] = SeenQueue(offset, position, position)
        else:
            known.ends = position

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


class Repaired(msgspec.Struct, frozen=True):
    """What was done."""

    kept_in: str
    """Where the files are now that were replaced."""
    topics: list[str]
    """Topics that were set up again, with as many queues as they had messages in."""
    kept_settings: bool
    """Whether topics, groups, offsets and users are as they were."""


def read_lives(records: Iterable[Sound]) -> dict[str, Life]:
    """Find out which queues there are, and where each begins."""
    lives: dict[str, Life] = {}
    for position, _, queue_id, offset, _, topic, _ in records:
        name = topic.decode("utf-8", "replace")
        lives.setdefault(name, Life()).see(queue_id, offset, position)
    return lives


def repair_store(path: Path) -> Repaired:
    """Rebuild what leads to the log. Raises `StoreInUse`, `StoreCorrupt` if the log has a hole."""
    with locked(path):
        seen = read_metadata(path / METADATA, Findings())
        reader = LogReader(Disk(path))
        try:
            if reader.holes():
                start, end = reader.holes()[0]
                raise StoreCorrupt(
                    f"bytes {start} to {end} of the commit log are missing: put the file back, or "
                    "move the files before it away, whose messages are lost then"
                )
            lives = read_lives(reader.read())
        finally:
            reader.close()
        kept_in = _move_aside(path, keep_metadata=seen is not None)
        made = _write(path, reader.first, lives, seen)
        return Repaired(str(kept_in), made, seen is not None)


def _move_aside(path: Path, *, keep_metadata: bool) -> Path:
    number = 1
    while (aside := path / f"before-repair-{number}").exists():
        number += 1
    try:
        aside.mkdir()
        names = [METADATA, f"{METADATA}-wal", f"{METADATA}-shm", "index"]
        for name in names[3:] if keep_metadata else names:
            if (path / name).exists():
                (path / name).rename(aside / name)
        sync_folder(path)
    except OSError as error:
        raise store_error(error, 0) from error
    return aside


def _write(path: Path, first: int, lives: dict[str, Life], seen: SeenMetadata | None) -> list[str]:
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
    made = [] if seen is not None else _topics(lives)
    metadata = Metadata(path / METADATA)
    try:
        metadata.begin_anew(first, queues, deleted)
        documents = {topic: encode_body(_config(topic, lives[topic])) for topic in made}
        metadata.save_documents("topic", dict(documents))
    finally:
        metadata.close()
    return made


def _topics(lives: dict[str, Life]) -> list[str]:
    """Give the topics to be set up again; the broker's own it makes for itself."""
    return sorted(topic for topic in lives if not is_system_topic(topic))


def _config(topic: str, life: Life) -> TopicConfig:
    count = max(life.queues) + 1
    return TopicConfig(topic_name=topic, read_queue_nums=count, write_queue_nums=count, perm=6)
