"""Reading a queue from an offset on, with RocketMQ's statuses for every case.

Pieces are views into the log's files: nothing is copied here, and a piece stays valid as long as
it is held, even when its file has been deleted. A record of an earlier run whose head is not what
the index says (size, magic, position) is damaged and passed over; what this run wrote is trusted.
Bodies are not checked against their checksum here: as with RocketMQ that is the consumer's choice,
who has the checksum too.
"""

import logging
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from enum import Enum
from itertools import accumulate, compress, islice, repeat
from operator import add, eq, ne, sub

import msgspec

from pocketmq.protocol.record_scan import MAGIC_V1, MAGIC_V2
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.queue_index import QueueIndex
from pocketmq.store.segments import Segment

logger = logging.getLogger("pocketmq.store")

Matches = Callable[[int, memoryview], bool]
"""Tells from a message's tag code and its whole record whether a reader wants it."""

SCAN_LIMIT = 800
"""Entries looked at in one read when few of them match, as in Java."""

_SMALLEST = 91
_SAMPLE = 8
_REPORTED = 1000
"""Damaged records told of one by one; after so many nobody learns more from a further line."""
_HEAD: Callable[[memoryview, int], tuple[int, int, int]] = struct.Struct(">Ii20xq").unpack_from


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


class Read(msgspec.Struct, gc=False):
    """What a read found, and where to go on.

    There is one piece for each record, unless the read was told that they may be joined.
    """

    status: ReadStatus
    next_offset: int
    min_offset: int
    max_offset: int
    pieces: list[memoryview] = []
    size: int = 0
    count: int = 0
    """How many records were found."""


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
) -> Read:
    """Read up to `max_count` records and about `max_bytes`; the first always comes, however large.

    `tags` are the codes wanted, looked up in the index alone; `matches` sees whole records. With
    `joined` records that lie side by side in the log, as those of a batch do, come as one piece:
    thousands of views are much of the work for whoever only sends them on.
    """
    if queue is None:
        return Read(ReadStatus.NO_MATCHED_LOGIC_QUEUE, 0, 0, 0)
    low, high = queue.min_offset, queue.next_offset
    if high == 0:
        return Read(ReadStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
    if offset < low:
        return Read(ReadStatus.OFFSET_TOO_SMALL, low, low, high)
    if offset == high:
        return Read(ReadStatus.OFFSET_OVERFLOW_ONE, offset, low, high)
    if offset > high:
        return Read(ReadStatus.OFFSET_OVERFLOW_BADLY, high, low, high)
    result = Read(ReadStatus.FOUND, offset, low, high)
    if matches is None and tags is None:
        _read_all(log, queue, max_count, max_bytes, result, joined=joined)
    else:
        _read_matching(log, queue, max_count, max_bytes, result, matches=matches, tags=tags)
        result.count = len(result.pieces)
    return result


def _read_all(
    log: CommitLog,
    queue: QueueIndex,
    max_count: int,
    max_bytes: int,
    result: Read,
    *,
    joined: bool,
) -> None:
    positions, sizes = queue.entries(result.next_offset, max_count)
    total = sum(sizes)
    if total > max_bytes:
        fitting = max(1, bisect_right(list(accumulate(sizes)), max_bytes))
        del positions[fitting:], sizes[fitting:]
        total = sum(sizes)
    pieces = result.pieces
    done, count = 0, len(positions)
    while done < count:
        segment = log.segments.at(positions[done])
        if segment is None:  # deleted, or the entry is damaged
            _report(log, queue, positions[done : done + 1], sizes[done : done + 1])
            done += 1
            continue
        stop = max(done + 1, bisect_left(positions, segment.end, done))
        trusted = log.inherited <= positions[done] and positions[stop - 1] < log.written
        here, long = positions[done:stop], sizes[done:stop]
        found, sound = _views(segment, here, long, trusted=trusted, joined=joined)
        if sound < stop - done:
            _report(log, queue, here, long)
        pieces += found
        result.count += sound
        done = stop
    result.next_offset += count
    result.size = total if result.count == count else sum([len(piece) for piece in pieces])
    if not pieces:
        result.status = ReadStatus.MESSAGE_WAS_REMOVING


def _views(
    segment: Segment, positions: list[int], sizes: list[int], *, trusted: bool, joined: bool
) -> tuple[list[memoryview], int]:
    """Give the records of one file that the index speaks of and how many; damaged ones not."""
    view, start, count = segment.view, segment.start, len(positions)
    if not trusted and min(positions) >= start and max(positions) + _SMALLEST <= segment.end:
        heads = [_HEAD(view, position - start) for position in positions]
        trusted = heads == list(zip(sizes, repeat(MAGIC_V1), positions, strict=False))
    if trusted:  # as nearly always
        pairs = _lying_together(positions, sizes) if joined else 0
        if pairs:
            stretches = _long_stretches if pairs == _SAMPLE else _stretches
            positions, sizes = stretches(positions, sizes)
        places = [position - start for position in positions]
        return [view[at : at + size] for at, size in zip(places, sizes, strict=True)], count
    views = [_sound_view(segment, *entry) for entry in zip(positions, sizes, strict=True)]
    sound = [piece for piece in views if piece is not None]
    return sound, len(sound)


def _lying_together(positions: list[int], sizes: list[int]) -> int:
    """Tell by the first few whether records came in batches: only then it pays to look at all."""
    few = positions[: _SAMPLE + 1]
    return sum(map(eq, map(add, few, sizes), few[1:]))


def _stretches(positions: list[int], sizes: list[int]) -> tuple[list[int], list[int]]:
    """Give positions and sizes of what lies side by side, instead of those of records."""
    ends = list(map(add, positions, sizes))
    gaps = map(ne, ends, islice(positions, 1, None))
    firsts = [0, *compress(range(1, len(positions)), gaps)]
    begins = [positions[first] for first in firsts]
    closes = [ends[first - 1] for first in firsts[1:]] + ends[-1:]
    return begins, list(map(sub, closes, begins))


def _long_stretches(positions: list[int], sizes: list[int]) -> tuple[list[int], list[int]]:
    """Give the same without a look at each, which is quicker where stretches are long.

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
    result: Read,
    *,
    matches: Matches | None,
    tags: AbstractSet[int] | None,
) -> None:
    offset, scan = result.next_offset, max(SCAN_LIMIT, max_count)
    positions, sizes = queue.entries(offset, scan)
    codes = queue.tags(offset, scan)
    for position, size, code in zip(positions, sizes, codes, strict=True):
        if tags is None or code in tags:
            record = _sound_view(log.segments.at(position), position, size)
            if record is None:
                _report(log, queue, [position], [size])
            if record is not None and (matches is None or matches(code, record)):
                if result.pieces and result.size + size > max_bytes:
                    break
                result.pieces.append(record)
                result.size += size
        offset += 1
        if len(result.pieces) >= max_count:
            break
    result.next_offset = offset
    if not result.pieces:
        result.status = ReadStatus.NO_MATCHED_MESSAGE


def _report(log: CommitLog, queue: QueueIndex, positions: list[int], sizes: list[int]) -> None:
    """Tell of damaged records, of each once; messages known to be lost were told of before."""
    for position, size in zip(positions, sizes, strict=True):
        sound = _sound_view(log.segments.at(position), position, size)
        told = position < log.first or position in log.damaged or len(log.damaged) >= _REPORTED
        if size and sound is None and not told:
            log.damaged.add(position)
            text = "queue %d of %s: the record at %d or its index entry is damaged, passed over"
            logger.warning(text, queue.queue_id, queue.topic, position)


def _sound_view(segment: Segment | None, position: int, size: int) -> memoryview | None:
    """Give the record the index speaks of, or None if it was lost, deleted or damaged."""
    if segment is None or not segment.start <= position <= segment.end - max(size, _SMALLEST):
        return None
    at = position - segment.start
    length, magic, place = _HEAD(segment.view, at)
    if length != size or place != position or magic not in (MAGIC_V1, MAGIC_V2):
        return None
    return segment.view[at : at + size]
