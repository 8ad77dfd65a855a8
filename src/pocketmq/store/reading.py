"""Reading a queue from an offset on, with RocketMQ's statuses for every case.

Pieces are views into the log's files: nothing is copied here, and a piece stays valid as long as
it is held, even when its file has been deleted. A record that is not what the index says, or whose
body does not have its checksum, is damaged and skipped; see `record_check`. Records that this
process wrote or checked a few minutes ago at most are not checked again: they come from memory.
What was written or checked earlier may have been read from the device again since.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import partial
from itertools import accumulate, compress, islice
from operator import add, eq, ne, sub
from typing import NamedTuple

import msgspec

from pocketmq.store.commit_log import CommitLog
from pocketmq.store.inner_batches import MARK, BatchWalk, Matches, ReadLimits
from pocketmq.store.queue_index import QueueIndex
from pocketmq.store.record_check import in_place, report_damaged, sound_record, suspect_rows
from pocketmq.store.segments import Segment

SCAN_LIMIT = 800
"""Entries scanned in one read when few of them match, as in Java."""

_SAMPLE = 8


class ReadStatus(Enum):
    """How a read ended; the names travel as the remark of a pull's answer."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_RESET = "OFFSET_RESET"


class QueueRead(msgspec.Struct, gc=False):
    """What a read found, and where to go on.

    There is one piece for each record, unless the read allows joined pieces.
    """

    status: ReadStatus
    next_offset: int
    min_offset: int
    max_offset: int
    pieces: list[memoryview] = []
    size: int = 0
    count: int = 0
    """How many messages were found: as many as pieces, where these are not joined or batches."""
    has_batches: bool = False
    """Whether pieces may be inner batches, which hold several messages."""


def read_queue(
    log: CommitLog,
    queue: QueueIndex | None,
    offset: int,
    *,
    max_count: int,
    max_bytes: int,
    matches: Matches | None = None,
    tags: AbstractSet[int] | None = None,
    joined: bool = False,
) -> QueueRead:
    """Read up to `max_count` records and about `max_bytes`; the first always comes, however large.

    `tags` are the codes wanted, looked up in the index alone; `matches` sees whole records. With
    `joined` records that lie side by side in the log, as those of a batch do, come as one piece:
    thousands of views are much of the work for a caller that only sends them on.
    """
    if queue is None:
        return QueueRead(ReadStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
    low, high = queue.min_offset, queue.next_offset
    if high == 0:
        return QueueRead(ReadStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
    if offset < low:
        return QueueRead(ReadStatus.OFFSET_TOO_SMALL, low, low, high)
    if offset == high:
        return QueueRead(ReadStatus.OFFSET_OVERFLOW_ONE, offset, low, high)
    if offset > high:
        return QueueRead(ReadStatus.OFFSET_OVERFLOW_BADLY, high, low, high)
    result = QueueRead(ReadStatus.FOUND, offset, low, high)
    if matches is None and tags is None:
        _read_all(log, queue, max_count, max_bytes, result, joined=joined)
    else:
        _read_matching(log, queue, max_count, max_bytes, result, matches=matches, tags=tags)
    return result


def _read_all(
    log: CommitLog,
    queue: QueueIndex,
    max_count: int,
    max_bytes: int,
    result: QueueRead,
    *,
    joined: bool,
) -> None:
    positions, sizes = queue.entries(result.next_offset, max_count)
    total = sum(sizes)
    if total >= MARK and max(sizes) >= MARK:
        _read_batches(log, queue, max_count, max_bytes, result)
        return
    if total > max_bytes:
        fitting = max(1, bisect_right(list(accumulate(sizes)), max_bytes))
        del positions[fitting:], sizes[fitting:]
        total = sum(sizes)
    pieces = result.pieces
    done, count, offset = 0, len(positions), result.next_offset
    segment = log.segments.at(positions[0]) if positions else None
    trusted = _is_trusted(log, queue, offset, positions, sizes, segment)
    if trusted and segment is not None and positions[-1] < segment.end:  # as nearly always
        result.pieces = _cut(segment, positions, sizes, joined=joined)
        result.next_offset, result.count, result.size = offset + count, count, total
        return
    sound_so_far = True
    while done < count:
        segment = log.segments.at(positions[done])
        stop = done + 1
        if segment is not None:
            stop = max(stop, bisect_left(positions, segment.end, done))
        here, long = positions[done:stop], sizes[done:stop]
        suspects: list[int] = []
        if segment is not None and not trusted:
            suspects = suspect_rows(segment, queue, offset + done, here, long)
        if segment is not None and not suspects:
            pieces += _cut(segment, here, long, joined=joined)
            result.count += stop - done
        else:  # damaged, deleted, or of an unusual form
            entries = _Entries(queue, offset + done, here, long)
            found = _sound_ones(log, entries, segment, frozenset(suspects))
            pieces += found
            result.count += len(found)
            sound_so_far = sound_so_far and len(found) == stop - done
        done = stop
    if sound_so_far and not trusted:
        queue.was_checked(log.checked_in, offset, offset + count)
    result.next_offset += count
    result.size = total if result.count == count else sum([len(piece) for piece in pieces])
    if not pieces:
        result.status = ReadStatus.MESSAGE_WAS_REMOVING


def _is_trusted(  # noqa: PLR0917 - a run of entries
    log: CommitLog,
    queue: QueueIndex,
    offset: int,
    positions: list[int],
    sizes: list[int],
    segment: Segment | None,
) -> bool:
    """Return whether records need no check: this process wrote or checked them recently.

    A damaged entry may point among recent records, so that the first record must bear it out. If
    that one is recent, so are those behind it. `segment` is the file of the first one.
    """
    if queue.is_checked(log.checked_in, offset, offset + len(positions)):
        return True
    if not positions or not log.recent <= positions[0] < log.written:
        return False
    return segment is not None and in_place(segment, queue, offset, positions[0], sizes[0])


def _cut(
    segment: Segment, positions: list[int], sizes: list[int], *, joined: bool
) -> list[memoryview]:
    """Return the sound records of one file, or the stretches of it that they fill."""
    view, start = segment.view, segment.start
    pairs = _lying_together(positions, sizes) if joined and len(positions) > 1 else 0
    if pairs:
        stretches = _long_stretches if pairs == _SAMPLE else _stretches
        positions, sizes = stretches(positions, sizes)
    if len(positions) == 1:
        at = positions[0] - start
        return [view[at : at + sizes[0]]]
    places = [position - start for position in positions]
    return [view[at : at + size] for at, size in zip(places, sizes, strict=True)]


class _Entries(NamedTuple):
    """Consecutive entries of a queue's index."""

    queue: QueueIndex
    offset: int
    positions: list[int]
    sizes: list[int]


def _sound_ones(
    log: CommitLog, entries: _Entries, segment: Segment | None, suspects: AbstractSet[int]
) -> list[memoryview]:
    """Return the sound records among those that index entries name, and report the others.

    Rows that are not among `suspects` are known to be sound; without a segment none is.
    """
    queue, offset, positions, sizes = entries
    found = []
    for row, (position, size) in enumerate(zip(positions, sizes, strict=True)):
        if segment is not None and row not in suspects:
            at = position - segment.start
            found.append(segment.view[at : at + size])
            continue
        record = sound_record(log.segments, queue, offset + row, position, size)
        if record is None:
            report_damaged(log, queue, offset + row, position, size)
        else:
            found.append(record)
    return found


def _lying_together(positions: list[int], sizes: list[int]) -> int:
    """Return whether records came in batches, by the first few: only then it pays to check all."""
    few = positions[: _SAMPLE + 1]
    return sum(map(eq, map(add, few, sizes), few[1:]))


def _stretches(positions: list[int], sizes: list[int]) -> tuple[list[int], list[int]]:
    """Return positions and sizes of what lies side by side, instead of those of records."""
    ends = list(map(add, positions, sizes))
    gaps = map(ne, ends, islice(positions, 1, None))
    firsts = [0, *compress(range(1, len(positions)), gaps)]
    begins = [positions[first] for first in firsts]
    closes = [ends[first - 1] for first in firsts[1:]] + ends[-1:]
    return begins, list(map(sub, closes, begins))


def _long_stretches(positions: list[int], sizes: list[int]) -> tuple[list[int], list[int]]:
    """Return the same without checking each, which is quicker where stretches are long.

    A position less the sizes of all before it stays the same as long as there is no gap, so that
    the end of a stretch can be searched for; most are as long as the one before.
    """
    before = [0, *accumulate(sizes)]
    begins: list[int] = []
    long: list[int] = []
    at, count, step = 0, len(positions), 1
    while at < count:
        shift = positions[at] - before[at]
        inside, outside = at, at + step
        while outside < count and positions[outside] - before[outside] == shift:
            inside, outside = outside, outside + step
            step *= 2
        outside = min(outside, count)
        while outside - inside > 1:
            middle = (inside + outside) // 2
            if positions[middle] - before[middle] == shift:
                inside = middle
            else:
                outside = middle
        begins.append(positions[at])
        long.append(before[outside] - before[at])
        at, step = outside, outside - at
    return begins, long


def _read_matching(
    log: CommitLog,
    queue: QueueIndex,
    max_count: int,
    max_bytes: int,
    result: QueueRead,
    *,
    matches: Matches | None,
    tags: AbstractSet[int] | None,
) -> None:
    offset, scan = result.next_offset, max(SCAN_LIMIT, max_count)
    positions, sizes = queue.entries(offset, scan)
    if sum(sizes) >= MARK and max(sizes) >= MARK:
        _read_batches(log, queue, max_count, max_bytes, result, matches=matches, tags=tags)
        return
    codes = queue.tags(offset, scan)
    segment = log.segments.at(positions[0]) if positions else None
    trusted = _is_trusted(log, queue, offset, positions, sizes, segment)
    for position, size, code in zip(positions, sizes, codes, strict=True):
        if tags is None or code in tags:
            record = _record(log, queue, offset, position, size, trusted=trusted)
            if record is not None and (matches is None or matches(code, record)):
                if result.pieces and result.size + size > max_bytes:
                    break
                result.pieces.append(record)
                result.size += size
        offset += 1
        if len(result.pieces) >= max_count:
            break
    result.next_offset, result.count = offset, len(result.pieces)
    if not result.pieces:
        result.status = ReadStatus.NO_MATCHED_MESSAGE


def _read_batches(
    log: CommitLog,
    queue: QueueIndex,
    max_count: int,
    max_bytes: int,
    result: QueueRead,
    *,
    matches: Matches | None = None,
    tags: AbstractSet[int] | None = None,
) -> None:
    """Read where inner batches are, each of them as a whole; see `inner_batches`."""
    plain, report = partial(_record, log, queue, trusted=False), partial(report_damaged, log, queue)
    walk = BatchWalk(log, queue, plain, report, tags, matches)
    limits = ReadLimits(max_count, max_bytes, max(SCAN_LIMIT, max_count))
    result.next_offset, result.count = walk.read(result.next_offset, limits, result.pieces)
    result.size, result.has_batches = sum(map(len, result.pieces)), True
    if not result.pieces:
        filtered = matches is not None or tags is not None
        missing = ReadStatus.MESSAGE_WAS_REMOVING
        result.status = ReadStatus.NO_MATCHED_MESSAGE if filtered else missing


def _record(
    log: CommitLog, queue: QueueIndex, offset: int, position: int, size: int, *, trusted: bool
) -> memoryview | None:
    """Return the record of one index entry; None, and a report, if it is not sound."""
    segment = log.segments.at(position)
    if segment is not None and (
        trusted or not suspect_rows(segment, queue, offset, [position], [size])
    ):
        at = position - segment.start
        return segment.view[at : at + size]
    found = _sound_ones(log, _Entries(queue, offset, [position], [size]), None, frozenset())
    return found[0] if found else None


def record_of(log: CommitLog, queue: QueueIndex, offset: int, position: int) -> bytes | None:
    """Return the record of a queue's message; see `MessageStore.record_of`."""
    if queue.position(offset) != position:
        return None
    read = read_queue(log, queue, offset, max_count=1, max_bytes=0)
    return bytes(read.pieces[0]) if read.count == len(read.pieces) == 1 else None
