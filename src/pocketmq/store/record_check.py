"""Checking that the records which a queue's index names are the queue's, and undamaged.

A record is handed out only if size, magic, queue, queue offset and position are what the index
says, its lengths add up, its topic is the queue's and its body has its checksum. Properties have
no checksum of their own. When a check is needed is decided in `reading`.
"""

import logging
import struct
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from mmap import mmap
from zlib import crc32

from pocketmq.protocol.record_scan import MAGIC_V1, SECTOR, looks_torn
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.log_scan import SegmentScan
from pocketmq.store.queue_index import QueueIndex
from pocketmq.store.segments import Segment, Segments

logger = logging.getLogger("pocketmq.store")

_SMALLEST = 91
_REPORTED = 1000
"""Damaged records that are logged and counted; a disk may have lost millions."""
# Size, magic, checksum, queue id, queue offset, position, the system flag's last byte, and the size
# of the body: where that stands in a record with IPv4 hosts.
_HEAD: Callable[[mmap, int], tuple[int, ...]] = struct.Struct(">IiiI4xqq3xB44xI").unpack_from
_PLACE: Callable[[mmap, int], tuple[int, ...]] = struct.Struct(">I8xI4xqq").unpack_from


def suspect_rows(
    segment: Segment, queue: QueueIndex, offset: int, positions: list[int], sizes: list[int]
) -> list[int]:
    """Return which of the records that consecutive index entries name are not known to be sound.

    Rows count from 0, for the entry at `offset`. Only the usual form (IPv4 hosts, a topic of up to
    127 bytes) is recognised: `sound_record` decides whether a suspect is sound.
    """
    topic = queue.topic.encode()
    if len(topic) > 127 or not _inside(segment, positions, sizes):
        return list(range(len(positions)))
    found, start, queue_id = segment.file.map, segment.start, queue.queue_id
    name, name_size = bytes((len(topic),)) + topic, len(topic) + 1
    tail, frame = _tail(name_size), name_size + 2
    suspects = []
    crc = crc32
    for place, position, size in zip(count(offset), positions, sizes):
        at = position - start
        length, magic, checksum, number, numbered, stands, flag, body = _HEAD(found, at)
        body_at, stop = at + 88, at + size
        body_end = body_at + body
        try:
            called, text = tail(found, body_end)
        except struct.error:  # a length led behind the file
            suspects.append(place - offset)
            continue
        if (
            length != size
            or magic != MAGIC_V1
            or number != queue_id
            or numbered != place
            or stands != position
            or flag & 0x30
            or called != name
            or body_end + frame + text != stop
            or crc(found[body_at:body_end]) & 0x7FFF_FFFF != checksum
            # A torn write; most properties are so short that their last byte shows it.
            or (size > SECTOR and text and not found[stop - 1])
            or (text > SECTOR and looks_torn(found[stop - text : stop]))
        ):
            suspects.append(place - offset)
    return suspects


@lru_cache(maxsize=256)
def _tail(name_size: int) -> Callable[[mmap, int], tuple[bytes, int]]:
    """Return what reads a topic of this size, its length included, and the properties' size."""
    return struct.Struct(f">{name_size}sH").unpack_from


def sound_record(
    segments: Segments, queue: QueueIndex, offset: int, position: int, size: int
) -> memoryview | None:
    """Return the record that one index entry names, or None if it is damaged, lost or deleted."""
    segment = segments.at(position)
    if segment is None or not _inside(segment, [position], [size]):
        return None
    found = SegmentScan(segment, position).first()
    if found is None:
        return None
    _, length, queue_id, number, _, topic, _ = found
    if (length, queue_id, number, topic) != (size, queue.queue_id, offset, queue.topic.encode()):
        return None
    at = position - segment.start
    return segment.view[at : at + size]


def in_place(segment: Segment, queue: QueueIndex, offset: int, position: int, size: int) -> bool:
    """Return whether a record's head names the queue, offset and position of its index entry."""
    if not segment.start <= position <= segment.end - max(size, _SMALLEST):
        return False
    expected = size, queue.queue_id, offset, position
    return _PLACE(segment.file.map, position - segment.start) == expected


def _inside(segment: Segment, positions: list[int], sizes: list[int]) -> bool:
    """Return whether all records, by their index entries, lie within the file."""
    if min(positions) < segment.start or min(sizes) < _SMALLEST:
        return False
    if max(positions) + max(sizes) <= segment.end:  # nearly always
        return True
    ends = map(int.__add__, positions, sizes)
    return max(ends) <= segment.end


def report_damaged(
    log: CommitLog, queue: QueueIndex, offset: int, position: int, size: int
) -> None:
    """Log a damaged record once. What is known to be lost is no news."""
    key = queue.number, offset
    if not size or key in log.damaged or len(log.damaged) >= _REPORTED:
        return
    log.damaged.add(key)
    logger.error(
        "damaged record skipped: topic=%s queue=%d queue_offset=%d log_position=%d; "
        "stop the broker and run `pocketmq store check --repair` on its data directory",
        queue.topic, queue.queue_id, offset, position,
    )  # fmt: skip
