"""Finding the sound records of a commit-log file, also behind damage.

A record is sound if its lengths add up, it stands where it says it stands, its body has its
checksum, and topic and properties show no trace of a torn write: what never reached the disk reads
as zeros, and appending refuses what would look the same.
"""

import struct
from collections.abc import Callable, Iterator
from mmap import mmap
from zlib import crc32

from pocketmq.protocol.record_scan import (
    BLANK_SIZE,
    BODY_AT,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    SECTOR,
    looks_torn,
)
from pocketmq.protocol.records import blank_record
from pocketmq.store.segments import Segment, Segments

Sound = tuple[int, int, int, int, int, bytes, bytes]
"""Position, size, queue id, queue offset, store time in ms, topic and properties of a record."""

_Measured = tuple[int, int, int, int, int, int, int, int, int, int]

_Read = Callable[[mmap, int], tuple[int, ...]]
# Size, magic, checksum, queue id, queue offset, position, system flag, store time, size of the
# body: where the last two stand in a record with IPv4 hosts.
_HEAD: _Read = struct.Struct(">IiiI4xqqi16xq20xi").unpack_from
_SIZE: _Read = struct.Struct(">i").unpack_from
_TIME: _Read = struct.Struct(">q").unpack_from
_MAGICS = tuple(
    magic.to_bytes(4, "big", signed=True) for magic in (MAGIC_V1, MAGIC_V2, MAGIC_BLANK)
)
_SMALLEST = 91


class SegmentScan:
    """One walk over a file: iterate once, then read how it ended."""

    def __init__(self, segment: Segment, start: int, stop: int | None = None) -> None:
        """Walk from one position to another, or to the file's end."""
        self.blank_at: int | None = None  # where the file's unused rest begins, once seen
        self._file = segment.file
        self._bytes = segment.file.map
        self._base = segment.start
        self._end = segment.end - segment.start
        self._at = max(0, start - segment.start)
        self._stop = self._end if stop is None else stop - segment.start
        self._data_end = -1
        self._seen = dict.fromkeys(_MAGICS, 0)  # where each magic stands next; -1 for nowhere

    def __iter__(self) -> Iterator[Sound]:
        at: int | None = self._at
        while at is not None and at < self._stop:
            found = self._sound(at)
            while found is not None:
                yield found
                at += found[1]
                found = self._sound(at) if at < self._stop else None
            if at >= self._stop:
                return
            if self._is_blank(at):
                self.blank_at = self._base + at
                return
            at = self._behind_damage(at)

    def first(self) -> Sound | None:
        """Return the record at the very start, if it is sound; damage is not skipped."""
        return self._sound(self._at)

    def _sound(self, at: int) -> Sound | None:
        measured = self._measure(at)
        if measured is None:
            return None
        size, crc, queue_id, offset, position, time, body_at, body_end, topic_at, topic_end = (
            measured
        )
        found = self._bytes
        topic = found[topic_at:topic_end]
        text = found[topic_end + 2 : at + size]
        if crc32(found[body_at:body_end]) & 0x7FFF_FFFF != crc or 0 in topic:
            return None
        if text and (not text[-1] or size > SECTOR) and looks_torn(text):
            return None
        return position, size, queue_id, offset, time, topic, text

    def _measure(self, at: int) -> _Measured | None:
        """Return a record's parts if it is in its place and its lengths add up."""
        found, end = self._bytes, self._end
        if end - at < _SMALLEST:
            return None
        size, magic, crc, queue_id, offset, position, flag, time, body_size = _HEAD(found, at)
        stop, body_at = at + size, at + 88
        if position != self._base + at or size < _SMALLEST or stop > end:
            return None
        if flag & 0x30:
            body_at = at + BODY_AT[flag >> 4 & 3]
            if body_at > stop:
                return None
            (body_size,) = _SIZE(found, body_at - 4)
            (time,) = _TIME(found, at + (68 if flag & 0x10 else 56))
        body_end = body_at + body_size
        if body_size < 0 or body_end > stop - 3:
            return None
        if magic == MAGIC_V1:
            topic_at = body_end + 1
            topic_end = topic_at + found[body_end]
        elif magic == MAGIC_V2:
            topic_at = body_end + 2
            topic_end = topic_at + (found[body_end] << 8 | found[body_end + 1])
        else:
            return None
        text_at = topic_end + 2
        if text_at > stop or text_at + (found[topic_end] << 8 | found[topic_end + 1]) != stop:
            return None
        return size, crc, queue_id, offset, position, time, body_at, body_end, topic_at, topic_end

    def _is_blank(self, at: int) -> bool:
        """Return whether the unused rest of the file begins here."""
        rest = self._end - at
        return rest >= BLANK_SIZE and self._bytes[at : at + BLANK_SIZE] == blank_record(rest)

    def _behind_damage(self, at: int) -> int | None:
        """Return where sound records may go on behind a place where there is none."""
        if self._data_end < 0:
            self._data_end = self._file.data_end(at)
        measured = self._measure(at)
        if measured is not None:  # its size can be trusted, though not its contents
            return at + measured[0]
        if self._is_torn(at):
            return None
        blank: int | None = None
        while (found := self._candidate(at + 1)) is not None:
            at = found
            if self._sound(at) is not None:
                return at
            if blank is None and self._is_blank(at):
                blank = at  # unless a record follows: then a body only looks like a blank
        return blank

    def _is_torn(self, at: int) -> bool:
        """Return whether this is a last record cut short, with nothing at all behind it.

        Its body must not be searched: its sender may have put a forged record in there.
        """
        if self._end - at < _SMALLEST:
            return False
        size, magic, _, _, _, position, flag, _, _ = _HEAD(self._bytes, at)
        body_at = at + BODY_AT[flag >> 4 & 3]
        if magic not in (MAGIC_V1, MAGIC_V2) or position != self._base + at:
            return False
        if not body_at <= at + size <= self._end:
            return False
        body_end = body_at + _SIZE(self._bytes, body_at - 4)[0]
        if not body_at <= body_end <= at + size - 3:
            return False
        return not self._bytes[body_end : self._data_end].strip(b"\0")

    def _candidate(self, start: int) -> int | None:
        """Find where the next record may begin: its magic stands four bytes in."""
        start += 4
        for magic, place in self._seen.items():
            if 0 <= place < start:  # looked for only once in any stretch of the file
                self._seen[magic] = self._bytes.find(magic, start, self._data_end)
        return min((place - 4 for place in self._seen.values() if place >= 0), default=None)


def walk_log(segments: Segments, start: int, tail: int, limit: int) -> tuple[list[Sound], int]:
    """Return up to `limit` sound records from a position on, and the next position."""
    found: list[Sound] = []
    position = max(start, segments.first)
    for segment in segments.from_position(position):
        for record in SegmentScan(segment, position, tail):
            found.append(record)
            position = record[0] + record[1]
            if len(found) >= limit:
                return found, position
        if segment.end <= tail:
            position = segment.end
    return found, position


def record_bytes(segments: Segments, position: int) -> bytes | None:
    """Return the sound record that begins at a position, if one does."""
    segment = segments.at(position)
    if segment is None:
        return None
    record = SegmentScan(segment, position).first()
    at = position - segment.start
    return None if record is None else bytes(segment.view[at : at + record[1]])
