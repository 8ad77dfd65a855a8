"""What the journal of pops says, held against the queues as they were when it was written.

A power cut can take messages and leave a record of the journal behind them. Their offsets go to
other messages then, of which the journal says nothing: an entry counts only for messages that lie
before it in the log. If it took a copy, the original is still out.
"""

import msgspec

from pocketmq.broker.core.log_origins import origin_of_popped
from pocketmq.broker.pop.journal import Cleared, Entry, Locked, Popped, Settled
from pocketmq.protocol.record_scan import RecordView
from pocketmq.store import MessageStore


def bounded(store: MessageStore, entry: Entry, position: int) -> Entry:
    """Return an entry of the journal, found at a position of the log, without what was lost."""
    match entry:
        case Popped():
            following = _end(store, entry, entry.following, position)
            if following < entry.following:
                offsets = [offset for offset in entry.all_offsets() if offset < following]
                return msgspec.structs.replace(entry, following=following, offsets=offsets)
        case Locked():
            last = max(entry.pop.offsets, default=-1) + 1
            if _end(store, entry, last, position) < last:  # all of it comes again
                entry.pop = msgspec.structs.replace(entry.pop, offsets=[])
            entry.committed = _end(store, entry, entry.committed, position)
        case Settled():
            if entry.copies:
                kept = [
                    offset
                    for offset, copy in zip(entry.offsets, entry.copies, strict=False)
                    if _has_copy(store, entry, offset, copy)
                ]
                return msgspec.structs.replace(entry, offsets=kept)
        case Cleared():
            entry.target = _end(store, entry, entry.target, position)
    return entry


def _end(store: MessageStore, entry: Popped | Locked | Cleared, offset: int, position: int) -> int:
    """Return an offset, or where the queue ended at the position if that was before it."""
    queue = store.queue(entry.topic, entry.queue_id)
    if queue is None:
        return min(offset, 0)
    if offset <= queue.min_offset:
        return offset
    last = queue.position(offset - 1)
    if last is not None and last < position:
        return offset
    return min(offset, queue.first_behind(position))


def _has_copy(store: MessageStore, settled: Settled, offset: int, copy: int) -> bool:
    """Return whether the copy of a message is in the log, or was until it grew too old."""
    queue = store.queue(settled.topic, settled.queue_id)
    position = None if queue is None else queue.position(offset)
    if copy < store.log.first or position is None:
        return True
    record = store.record_at(copy)
    return record is not None and RecordView(
        record, 0
    ).prepared_transaction_offset == origin_of_popped(position)
