"""The queues of a store by topic and id.

Those of an earlier run are loaded when their topic is first asked for, so that starting does not
depend on how many there are. Belongs to the writer's thread.
"""

from collections.abc import Iterable, Mapping

from pocketmq.store.extents import Extent, ExtentFiles
from pocketmq.store.log_scan import Sound
from pocketmq.store.metadata import Metadata
from pocketmq.store.queue_index import Index, QueueIndex


class Queues:
    """Finds, makes and deletes queues."""

    def __init__(self, files: ExtentFiles, metadata: Metadata) -> None:
        self.index = Index(files)
        self.files = files
        self.next_number = 1
        self.gone: list[int] = []  # queues that the next checkpoint must forget
        self._metadata = metadata
        self._loaded: dict[str, dict[int, QueueIndex]] = {}  # empty: known to have no queues
        self._stored: set[str] = set()  # topics with queues in the metadata that are not loaded
        self._to_trim: list[str] = []

    def load(self, deleted: Iterable[str]) -> None:
        """Begin with what the metadata holds, without the topics deleted since its checkpoint."""
        self.next_number = self._metadata.number("next_number") or 1
        self._stored = set(self._metadata.topics())
        for topic in deleted:
            self._forget(topic)

    def get(self, topic: str, queue_id: int) -> QueueIndex | None:
        """Return a queue that has or had messages."""
        queues = self._loaded.get(topic)
        if queues is None:
            if topic not in self._stored:
                return None
            queues = self._load_topic(topic)
        return queues.get(queue_id)

    def keep(self, record: Sound) -> bool:
        """Return whether a queue still has a record of the log: its topic may have been deleted."""
        position, _, queue_id, queue_offset, _, topic, _ = record
        queue = self.get(topic.decode("utf-8", "replace"), queue_id)
        return queue is not None and queue.position(queue_offset) == position

    def by_id(self, topic: str) -> Mapping[int, QueueIndex]:
        """Return the queues of a topic that have or had messages, by their ids; not to be kept."""
        queues = self._loaded.get(topic)
        if queues is None:
            queues = self._load_topic(topic) if topic in self._stored else {}
        return queues

    def make(self, topic: str, queue_id: int) -> QueueIndex:
        """Return a queue, making it if it is new."""
        queue = self.get(topic, queue_id)
        if queue is None:
            siblings = self._loaded.setdefault(topic, {})
            for sibling in siblings.values():
                topic = sibling.topic  # one string for all
                break
            queue = siblings[queue_id] = QueueIndex(self.index, self.next_number, topic, queue_id)
            self.next_number += 1
        return queue

    def of(self, topic: str) -> list[QueueIndex]:
        """Return the queues of a topic that have or had messages, by their ids."""
        if topic in self._stored:
            self._load_topic(topic)
        return [queue for _, queue in sorted(self._loaded.get(topic, {}).items())]

    def topics(self) -> set[str]:
        """Return the topics that have or had messages."""
        return {topic for topic, queues in self._loaded.items() if queues} | self._stored

    def ends(self) -> dict[tuple[str, int], int]:
        """Return the next offset of every queue, by topic and queue id."""
        ends = {
            (topic, queue_id): next_offset
            for topic, queue_id, next_offset in self._metadata.queue_ends()
            if topic in self._stored
        }
        for topic, queues in self._loaded.items():
            ends |= {(topic, queue_id): queue.next_offset for queue_id, queue in queues.items()}
        return ends

    def delete(self, topic: str, position: int) -> None:
        """Forget a topic for good; its records before a log position mean nothing any more."""
        if topic not in self._stored and not self._loaded.get(topic):
            return
        self._metadata.delete_topic(topic, position)
        self._forget(topic)

    def log_was_cut(self, first_kept: int) -> None:
        """Take note that the log begins later now: entries before that are gone.

        Queues in use notice by themselves; `trim` handles those that are not used.
        """
        self.index.first_kept = first_kept
        if not self._to_trim:
            self._to_trim = list(self.topics())

    def trim(self, topics: int) -> None:
        """Free the index space of old entries, for a few topics at a time."""
        for _ in range(min(topics, len(self._to_trim))):
            topic = self._to_trim.pop()
            was_stored = topic in self._stored
            queues = self.of(topic)
            for queue in queues:
                queue.trim()
            if was_stored and self.index.dirty.isdisjoint(queues):
                del self._loaded[topic]
                self._stored.add(topic)

    def _forget(self, topic: str) -> None:
        for queue in self.of(topic):
            self.gone.append(queue.number)
            queue.forget()
        self._loaded.pop(topic, None)

    def _load_topic(self, topic: str) -> dict[int, QueueIndex]:
        queues: dict[int, QueueIndex] = {}
        for number, _, queue_id, min_offset, next_offset in self._metadata.queues_of(topic):
            rows = self._metadata.extents_of(number)
            extents = [
                Extent(first, entries, file, place) for file, place, entries, _, first in rows
            ]
            queue = queues[queue_id] = QueueIndex(self.index, number, topic, queue_id)
            queue.restore(extents, min_offset, next_offset)
        self._stored.discard(topic)
        self._loaded[topic] = queues
        return queues
