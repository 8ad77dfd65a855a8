"""Timed messages as they lie in the store: by offset, behind a position, or delivered already.

Pure questions to the store. What they mean for what waits is `timer_queue`'s.
"""

from collections.abc import Iterator

from pocketmq.broker.core.log_origins import copies_since, timer_of_origin
from pocketmq.protocol.record_scan import RecordView
from pocketmq.store import MessageStore, QueueIndex

CHUNK = 8192
"""Index entries that are read at once."""


def records_at(store: MessageStore, queue: QueueIndex, offsets: list[int]) -> Iterator[RecordView]:
    """Give the messages at some offsets of a queue, in order, but for those that are lost."""
    for first, count in _stretches(sorted(offsets)):
        offset, end = first, first + count
        while offset < end:
            read = store.read(queue, offset, end - offset, 1 << 30)
            for piece in read.pieces:
                yield RecordView(piece, 0)
            offset = max(read.next_offset, offset + 1)


def delivered_since(store: MessageStore, position: int) -> set[int]:
    """Give the offsets of messages whose copies lie behind a position of the log."""
    delivered: set[int] = set()
    for copy in copies_since(store, position):
        origin = timer_of_origin(copy.origin)
        record = None if origin is None else store.record_at(origin)
        if record is not None:
            delivered.add(RecordView(record, 0).queue_offset)
    return delivered


def first_due_from(queue: QueueIndex, offset: int, moment_ms: int) -> int | None:
    """Give the first message, or taking back of one, that is due at a moment or after it."""
    while offset < queue.next_offset:
        tags = queue.tags(offset, CHUNK)
        for number, tag in enumerate(tags, offset):
            if abs(tag) >= moment_ms:
                return number
        offset += len(tags)
    return None


def _stretches(offsets: list[int]) -> Iterator[tuple[int, int]]:
    """Give the runs of consecutive offsets: the first of each, and how many."""
    start = 0
    for at in range(1, len(offsets) + 1):
        if at == len(offsets) or offsets[at] != offsets[at - 1] + 1:
            yield offsets[start], at - start
            start = at
