"""Finding messages of a queue by the time they were stored: a binary search in its index."""

import struct
from collections.abc import Callable

from pocketmq.store.commit_log import CommitLog
from pocketmq.store.inner_batches import MARK, find_batch
from pocketmq.store.queue_index import QueueIndex
from pocketmq.store.record_check import in_place

_FLAG: Callable[[memoryview, int], tuple[int]] = struct.Struct(">i").unpack_from
_TIME: Callable[[memoryview, int], tuple[int]] = struct.Struct(">q").unpack_from


_LOOK = 1024
"""Entries read to find a sound one: more than a damaged page of an index holds."""


def store_time(log: CommitLog, queue: QueueIndex, offset: int) -> int:
    """Return when a message was stored, in milliseconds; -1 if it is not there.

    For one that was lost or damaged it is the time of the next.
    """
    if queue.position(offset) is None:
        return -1
    return _sound_from(log, queue, offset)[1]


def _sound_from(log: CommitLog, queue: QueueIndex, offset: int) -> tuple[int, int]:
    """Return the offset and store time of the first sound message from an offset on.

    The time is -1 if there is none near.
    """
    bad = -1  # all entries of a batch lead to the same record
    for count in (1, _LOOK):
        positions, sizes = queue.entries(offset, count)
        for number, (position, size) in enumerate(zip(positions, sizes, strict=True), offset):
            if size and position != bad:
                stored = _time_at(log, queue, number, position, size)
                if stored is not None:
                    return number, stored
                bad = position
    return offset, -1


def _time_at(
    log: CommitLog, queue: QueueIndex, offset: int, position: int, size: int
) -> int | None:
    """Return the store time of the record that an entry names; None if it is not sound."""
    if size & MARK:
        batch = find_batch(log, queue, offset, position, size)
        return None if batch is None else batch.store_time_ms
    segment = log.segments.at(position)
    if segment is None or not in_place(segment, queue, offset, position, size):
        return None
    view = log.view(position, 76)
    assert view is not None
    return _TIME(view, 68 if _FLAG(view, 36)[0] & 0x10 else 56)[0]


def offset_by_time(log: CommitLog, queue: QueueIndex, time_ms: int, *, upper: bool) -> int:
    """Return the first message stored at or after a time; past the end, the next one to come.

    With `upper` the last message at or before it; 0 if there is none, as in RocketMQ 5.x. Either
    way the first message stands for an inner batch, whose messages were stored together.
    """
    low, high = queue.min_offset, queue.next_offset
    while low < high:
        middle = (low + high) // 2
        sound, stored = _sound_from(log, queue, middle)
        if sound >= high or stored < 0:  # nothing sound here: what is searched for lies before
            high = middle
        elif stored < time_ms or (upper and stored == time_ms):
            low = sound + 1
        else:
            high = middle
    if not upper:
        return low
    return _first_of_batch(log, queue, low - 1) if low > queue.min_offset else 0


def _first_of_batch(log: CommitLog, queue: QueueIndex, offset: int) -> int:
    (position,), (size,) = queue.entries(offset, 1)
    batch = find_batch(log, queue, offset, position, size) if size & MARK else None
    return offset if batch is None else batch.first
