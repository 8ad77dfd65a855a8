"""Finding messages of a queue by the moment they were stored."""

import struct
from collections.abc import Callable

from pocketmq.store.commit_log import CommitLog
from pocketmq.store.queue_index import QueueIndex

_FLAG: Callable[[memoryview, int], tuple[int]] = struct.Struct(">i").unpack_from
_TIME: Callable[[memoryview, int], tuple[int]] = struct.Struct(">q").unpack_from


def store_time(log: CommitLog, queue: QueueIndex, offset: int) -> int:
    """Give when a message was stored, in milliseconds; -1 if it is not there.

    For one that was lost it is the time of the next.
    """
    position = queue.position(offset)
    view = None if position is None else log.view(position, 76)
    if view is None:
        return -1
    return _TIME(view, 68 if _FLAG(view, 36)[0] & 0x10 else 56)[0]


def offset_by_time(log: CommitLog, queue: QueueIndex, moment_ms: int, *, upper: bool) -> int:
    """Find the first message stored at or after a moment; past the end, the next one to come.

    With `upper` the last message at or before it; 0 if there is none, as in RocketMQ 5.x.
    """
    low, high = queue.min_offset, queue.next_offset
    while low < high:
        middle = (low + high) // 2
        stored = store_time(log, queue, middle)
        if stored < moment_ms or (upper and stored == moment_ms):
            low = middle + 1
        else:
            high = middle
    if not upper:
        return low
    return low - 1 if low > queue.min_offset else 0
