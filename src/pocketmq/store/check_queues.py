"""Comparing the queues of a store with the records of its log, without changing either."""

import mmap
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pocketmq.protocol import RecordView, tags_code
from pocketmq.protocol.inner_batch import batch_size
from pocketmq.store.check_metadata import SeenMetadata
from pocketmq.store.check_values import Findings, Severity, StoredFormats
from pocketmq.store.extents import FILE_BYTES
from pocketmq.store.inner_batches import MARK
from pocketmq.store.log_scan import Sound

PART = "queues"
_MOST_OPEN = 32
"""Files of the index that are open at once: there may be more than a process may have open."""

Columns = tuple[memoryview, memoryview, memoryview]


class IndexFiles:
    """The files of the index as columns of numbers, read only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._maps: dict[int, Columns | None] = {}

    def columns(self, number: int) -> Columns | None:
        """Return positions, sizes and tag codes of a file; None if it is missing or too short."""
        if number not in self._maps:
            if len(self._maps) >= _MOST_OPEN:
                del self._maps[next(iter(self._maps))]
            self._maps[number] = self._read(self._folder / f"{number:08d}")
        return self._maps[number]

    def _read(self, path: Path) -> Columns | None:
        with suppress(OSError, ValueError), path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if len(mapped) == FILE_BYTES:
                view = memoryview(mapped)
                return view.cast("Q"), view.cast("I"), view.cast("q")
        return None

    def close(self) -> None:
        """Let go of the files."""
        for columns in self._maps.values():
            for column in columns or ():
                column.release()
        self._maps.clear()


class SeenQueue:
    """A queue as the last checkpoint recorded it, and which of its entries a record bears out."""

    def __init__(self, number: int, topic: str, queue_id: int, low: int, high: int) -> None:
        self.number = number
        self.topic = topic
        self.name = f"queue {queue_id} of {topic}"
        self.low = low
        self.high = high
        self.runs: list[tuple[int, int, int, int]] = []  # first offset, entries, file, place
        self._borne_out = bytearray(max(high - low, 0))
        self._firsts: list[int] = []

    def add_run(self, first: int, entries: int, file: int, place: int) -> None:
        """Take note of index space."""
        self.runs.append((first, entries, file, place))

    def check_runs(self, findings: Findings) -> None:
        """Check that the index space covers the offsets without a gap."""
        self.runs.sort()
        self._firsts = [run[0] for run in self.runs]
        at = self.runs[0][0] if self.runs else self.high
        if self.low < self.high and at > self.low:
            text = f"{self.name} begins at offset {self.low}, its index at {at}"
            findings.error(PART, text, kind="queues that begin before their index")
        for first, entries, _, _ in self.runs:
            if first != at:
                text = f"{self.name} has no index for offsets {at} to {first}"
                findings.error(PART, text, kind="gaps in an index")
            at = first + entries
        if at < self.high:
            text = f"{self.name} has no index for offsets {at} to {self.high}"
            findings.error(PART, text, kind="gaps in an index")

    def entry(self, offset: int, files: IndexFiles) -> tuple[int, int, int] | None:
        """Return position, size and tag code of an entry; None if its file is not there."""
        index = bisect_right(self._firsts, offset) - 1
        if index < 0:
            return None
        first, entries, file, place = self.runs[index]
        columns = files.columns(file)
        if columns is None or offset >= first + entries:
            return None
        positions, sizes, tags = columns
        at = offset - first
        size = sizes[(place + 16 * entries) // 4 + at]
        return positions[place // 8 + at], size, tags[place // 8 + entries + at]

    def bear_out(self, offset: int) -> None:
        """Take note that an entry's record is in the log."""
        self._borne_out[offset - self.low] = 1

    def others(self) -> Iterator[int]:
        """Return the offsets of entries without a record."""
        at = self._borne_out.find(0)
        while at >= 0:
            yield self.low + at
            at = self._borne_out.find(0, at + 1)


class QueueCheck:
    """The queues of a store, held against one record of the log after another."""

    def __init__(
        self, seen: SeenMetadata, folder: Path, findings: Findings, formats: StoredFormats
    ) -> None:
        self._rules = formats.tag_rules
        self._repair = seen.repair
        self.checkpoint = seen.position
        self.waiting = 0  # records behind the checkpoint: the next start takes them in
        self.dead = 0  # records of topics that were deleted
        self._findings = findings
        self._files = IndexFiles(folder)
        self._queues = {
            (topic, queue_id): SeenQueue(number, topic, queue_id, low, high)
            for number, topic, queue_id, low, high in seen.queues
        }
        by_number = {queue.number: queue for queue in self._queues.values()}
        for file, place, entries, number, first in seen.extents:
            if number in by_number:
                by_number[number].add_run(first, entries, file, place)
            elif number:
                text = f"index space at {file}:{place} belongs to queue number {number}, unknown"
                findings.add(Severity.WARNING, PART, text, kind="index space of unknown queues")
        for queue in self._queues.values():
            queue.check_runs(findings)
        self._deleted = seen.deleted
        self._check_files(seen)

    def _check_files(self, seen: SeenMetadata) -> None:
        for number in range(-(-seen.numbers.get("index_end", 0) // FILE_BYTES)):
            if self._files.columns(number) is None:
                text = f"index/{number:08d} is missing or has the wrong size"
                self._findings.error(PART, text, kind="missing index files")

    def see(self, record: Sound, view: RecordView) -> None:
        """Look for a record in its queue."""
        position, size, queue_id, offset, _, topic, _ = record
        if position >= self.checkpoint:
            self.waiting += 1
            return
        name = topic.decode("utf-8", "replace")
        queue = self._queues.get((name, queue_id))
        if queue is None or position < self._deleted.get(name, 0):
            self.dead += 1  # queues are only forgotten with their topic
            return
        if not queue.low <= offset < queue.high:
            self.dead += 1  # of an earlier life of the topic: offsets began at 0 again
            return
        count, shown = batch_size(view), size
        if count:
            shown |= MARK
        for each in range(offset, min(offset + max(count, 1), queue.high)):
            self._see_entry(queue, each, (position, shown), record, view)

    def _see_entry(
        self,
        queue: SeenQueue,
        offset: int,
        expected: tuple[int, int],
        record: Sound,
        view: RecordView,
    ) -> None:
        """Hold one entry of a queue against the record that should be there."""
        position, size = record[:2]
        entry = queue.entry(offset, self._files)
        if entry is not None and entry[:2] == expected:
            queue.bear_out(offset)
            tag = self._tag(queue.topic, record, view)
            if tag is not None and tag != entry[2]:
                text = f"{queue.name} has tag code {entry[2]} at offset {offset}, not {tag}"
                self._findings.error(PART, text, kind="wrong tag codes")
        elif (entry is not None and entry[0] > position) or self._is_known(position, size):
            self.dead += 1
        else:
            text = f"{queue.name} does not have the record of offset {offset} at byte {position}"
            self._findings.error(PART, text, kind="records that are not in their queue")

    def _is_known(self, position: int, size: int) -> bool:
        """Return whether a repair has found that a record's offset cannot be."""
        return self._repair is not None and self._repair.knows(position, position + size)

    def _tag(self, topic: str, record: Sound, view: RecordView) -> int | None:
        """Return the tag code that a record should have in its queue; None if unknown."""
        if self._rules is None:
            return None
        if topic in self._rules:
            rule = self._rules[topic]
            return None if rule is None else rule(view)
        return tags_code(record[6])

    def finish(self, first_kept: int) -> None:
        """Check the entries for which the log has no record."""
        findings = self._findings
        for queue in self._queues.values():
            for offset in queue.others():
                entry = queue.entry(offset, self._files)
                if entry is None:
                    break  # its file is missing, which has been reported
                if entry[0] < first_kept:
                    continue  # its file of the log was deleted for its age
                if entry[1] == 0:
                    text = f"{queue.name} has lost the message of offset {offset}"
                    findings.add(Severity.WARNING, PART, text, kind="messages known to be lost")
                    continue
                text = (
                    f"{queue.name}: offset {offset} points to byte {entry[0]}, "
                    "where no sound record of it is"
                )
                findings.error(PART, text, kind="entries without a record")
        self._files.close()

    def summary(self) -> str:
        """Return a one-line summary."""
        entries = sum(queue.high - queue.low for queue in self._queues.values())
        topics = len({topic for topic, _ in self._queues})
        return f"{len(self._queues)} queues of {topics} topics, {entries} messages"
