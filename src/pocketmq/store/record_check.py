"""Checking that the records which a queue's index names are the queue's, and undamaged.

A record is handed out only if size, magic, queue, queue offset and position are what the index
says, its lengths add up, its topic is the queue's and its body has its checksum. Properties have
no checksum of their own. Knows nothing of when a check is needed; see `reading`.
"""

import struct
from collections.abc import Callable
from mmap import mmap
from zlib import crc32

from pocketmq.protocol.record_scan import MAGIC_V1, SECTOR, looks_torn
from pocketmq.store.log_scan import SegmentScan
from pocketmq.store.queue_index import QueueIndex
from pocketmq.store.segments import Segment, Segments

_SMALLEST = 91
# Size, magic, checksum, queue id, queue offset, position, the system flag's last byte, and the size
# of the body: where that stands in a record with IPv4 hosts.
_HEAD: Callable[[mmap, int], tuple[int, ...]] = struct.Struct(">IiiI4xqq3xB44xI").unpack_from
_PLACE: Callable[[mmap, int], tuple[int, ...]] = struct.Struct(">I8xI4xqq").unpack_from


def all_sound(
    segment: Segment, queue: QueueIndex, offset: int, positions: list[int], sizes: list[int]
) -> bool:
    """Return whether every record named by consecutive index entries is sound.

    Only the usual form (IPv4 hosts, a topic of up to 127 bytes) is recognised: False means that
    each record has to be looked at with `sound_record`.
    """
    topic = queue.topic.encode()
    if len(topic) > 127 or not _inside(segment, positions, sizes):
        return False
    found, start, queue_id = segment.file.map, segment.start, queue.queue_id
    name, name_size = bytes((len(topic),)) + topic, len(topic) + 1
    crc, torn = crc32, looks_torn
    try:
        for position, size in zip(positions, sizes, strict=True):
            at = position - start
            length, magic, checksum, number, place, stands, flag, body = _HEAD(found, at)
            body_end = at + 88 + body
            text_at = body_end + name_size
            stop = at + size
            if (
                length != size
                or magic != MAGIC_V1
                or number != queue_id
                or place != offset
                or stands != position
                or flag & 0x30
                or found[body_end:text_at] != name
                or text_at + 2 + (found[text_at] << 8 | found[text_at + 1]) != stop
                or crc(found[at + 88 : body_end]) & 0x7FFF_FFFF != checksum
                or (size > SECTOR and torn(found[text_at + 2 : stop]))
            ):
                return False
            offset += 1
    except IndexError:  # a length led behind the file
        return False
    return True


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
