"""What the journal of pops says, held against the queues as they were when it was written.

A power cut can take messages and leave a record of the journal behind them. Their offsets go to
other messages then, of which the journal says nothing: an entry counts only for messages that lie
before it in the log.
"""

import msgspec

from pocketmq.broker.pop.journal import Cleared, Entry, Locked, Popped
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
        case Cleared():
            entry.target = _end(store, entry, entry.target, position)
    return entry


def _end(
    store: MessageStore, entry: Popped | Locked | Cleared, offset: int, position: int
) -> int:
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
