"""Inner batches in a queue's index, and reading a queue where there are some.

Each of a batch's offsets has an entry, and all are the same. So an offset inside of a batch
leads to its record in one step, and offsets by time, retention and the ends of a queue need to
know nothing of batches. `MARK` in an entry's size tells that the record holds several messages;
the other bits are the record's size.

As in Java a batch is read as a whole: a read that begins inside of one returns all of it, and
the reader drops what comes before. Limits count messages, but the first record always comes,
however many it holds. The tag of a batch is that of its record, which hardly ever has one: the
tags of its messages are seen by consumers alone.
"""

from bisect import bisect_right
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pocketmq.protocol.inner_batch import MOST_MESSAGES, batch_size
from pocketmq.protocol.record_scan import RecordView
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.log_scan import SegmentScan
from pocketmq.store.queue_index import QueueIndex

MARK = 1 << 31
"""No record is that large: sizes are signed numbers of 32 bits."""
_STEP = 64
_SMALLEST = 91


def append_batch_entries(queue: QueueIndex, count: int, position: int, size: int, tag: int) -> None:
    """Add the entries of an inner batch, all of them or, when `StoreFull` is raised, none."""
    queue.append_many([position] * count, [size | MARK] * count, [tag] * count)


def place_batch_entries(
    queue: QueueIndex, offset: int, count: int, entry: tuple[int, int, int], *, losses: int
) -> bool:
    """Put an inner batch found by recovery at its own offsets; see `QueueIndex.place`.

    Its entry is its position, size and tag code.
    """
    position, size, tag = entry
    if offset == queue.next_offset:
        append_batch_entries(queue, count, position, size, tag)
        return True
    placed = [
        queue.place(each, position, size | MARK, tag, losses=losses if each == offset else 0)
        for each in range(offset, offset + count)
    ]
    return any(placed)


def end_of_batch(queue: QueueIndex, offset: int, position: int) -> int:
    """Return the offset behind the last entry of the batch that lies at a position of the log."""
    step, most = _STEP, offset + MOST_MESSAGES
    while offset < most:
        positions, _ = queue.entries(offset, step)
        found = bisect_right(positions, position)
        offset += found
        if found < step:
            break
        step *= 8
    return offset


class StoredBatch(NamedTuple):
    """The record of an inner batch, the offset of its first message and that behind its last."""

    record: memoryview
    first: int
    following: int
    store_time_ms: int


def find_batch(
    log: CommitLog, queue: QueueIndex, offset: int, position: int, size: int
) -> StoredBatch | None:
    """Return the batch that an entry with a marked size names; None if its record is not sound.

    What this process wrote or checked recently is only looked at, as in `reading`.
    """
    size &= ~MARK
    segment = log.segments.at(position)
    if segment is None or not _SMALLEST <= size <= segment.end - position:
        return None
    at = position - segment.start
    view = RecordView(segment.view, at)
    place = view.store_size, view.queue_id, view.commit_log_offset
    if place != (size, queue.queue_id, position):
        return None
    if not log.recent <= position < log.written:
        found = SegmentScan(segment, position).first()
        if found is None or found[5] != queue.topic.encode():
            return None
    first = view.queue_offset
    following = first + batch_size(view)
    if not first <= offset < following or queue.position(following - 1) != position:
        return None
    record = segment.view[at : at + size]
    return StoredBatch(record, first, following, view.store_timestamp_ms)


def place_of(log: CommitLog, queue: QueueIndex, offset: int) -> int | None:
    """Return a byte of the log that is one message's alone; see `MessageStore.place_of`."""
    if offset < queue.min_offset:
        return None
    positions, sizes = queue.entries(offset, 1)
    if not positions:
        return None
    position = positions[0]
    batch = find_batch(log, queue, offset, position, sizes[0]) if sizes[0] & MARK else None
    return position if batch is None else position + offset - batch.first


Matches = Callable[[int, memoryview], bool]
"""Returns whether a reader wants a message, by its tag code and its whole record."""


class ReadLimits(NamedTuple):
    """What a read may return, and how many offsets it looks at."""

    messages: int
    size: int
    scan: int


class BatchWalk(NamedTuple):
    """A walk over the entries of one queue, record by record."""

    log: CommitLog
    queue: QueueIndex
    plain: Callable[[int, int, int], memoryview | None]
    """Returns the plain record of an entry, by offset, position and size; None if not sound."""
    report: Callable[[int, int, int], None]
    """Reports a damaged batch, by the same."""
    tags: AbstractSet[int] | None
    matches: Matches | None

    def read(self, offset: int, limits: ReadLimits, pieces: list[memoryview]) -> tuple[int, int]:
        """Add records to `pieces`; return where to continue and how many messages they hold."""
        queue, count, size, start = self.queue, 0, 0, offset
        while offset < queue.next_offset and offset - start < limits.scan:
            (position,), (entry_size,) = queue.entries(offset, 1)
            (code,) = queue.tags(offset, 1)
            record, messages, following = self._look(offset, position, entry_size)
            wanted = self.tags is None or code in self.tags
            if record is not None and wanted and (not self.matches or self.matches(code, record)):
                full = count + messages > limits.messages or size + len(record) > limits.size
                if pieces and full:
                    break
                pieces.append(record)
                count += messages
                size += len(record)
            offset = following
            if count >= limits.messages:
                break
        return offset, count

    def _look(self, offset: int, position: int, size: int) -> tuple[memoryview | None, int, int]:
        """Return a record, how many messages it holds, and the offset behind it."""
        if not size & MARK:
            return self.plain(offset, position, size), 1, offset + 1
        batch = find_batch(self.log, self.queue, offset, position, size)
        if batch is None:
            self.report(offset, position, size)
            return None, 0, end_of_batch(self.queue, offset, position)
        return batch.record, batch.following - batch.first, batch.following
