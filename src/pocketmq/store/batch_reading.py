"""Reading a queue where inner batches are: each comes as a whole, as in Java.

A read that begins inside of a batch returns all of it; the reader drops what comes before. Limits
count messages, but the first record always comes, however many it holds. The tag of a batch is that
of its record, which hardly ever has one: the tags of its messages are seen by consumers alone.
"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from pocketmq.store.commit_log import CommitLog
from pocketmq.store.inner_batches import MARK, end_of_batch, find_batch
from pocketmq.store.queue_index import QueueIndex

Matches = Callable[[int, memoryview], bool]
"""Returns whether a reader wants a message, by its tag code and its whole record."""


class Limits(NamedTuple):
    """What a read may return, and how many offsets it looks at."""

    messages: int
    size: int
    scan: int


class BatchWalk(NamedTuple):
    """A walk over the entries of one queue, record by record."""

    log: CommitLog
    queue: QueueIndex
    plain: Callable[[int, int, int], memoryview | None]
    """Returns the plain record of an entry, by offset, position and size; None if not sound."""
    report: Callable[[int, int, int], None]
    """Reports a damaged batch, by the same."""
    tags: AbstractSet[int] | None
    matches: Matches | None

    def read(self, offset: int, limits: Limits, pieces: list[memoryview]) -> tuple[int, int]:
        """Add records to `pieces`; return where to continue and how many messages they hold."""
        queue, count, size, start = self.queue, 0, 0, offset
        while offset < queue.next_offset and offset - start < limits.scan:
            (position,), (entry_size,) = queue.entries(offset, 1)
            (code,) = queue.tags(offset, 1)
            record, messages, following = self._look(offset, position, entry_size)
            wanted = self.tags is None or code in self.tags
            if record is not None and wanted and (not self.matches or self.matches(code, record)):
                full = count + messages > limits.messages or size + len(record) > limits.size
                if pieces and full:
                    break
                pieces.append(record)
                count += messages
                size += len(record)
            offset = following
            if count >= limits.messages:
                break
        return offset, count

    def _look(self, offset: int, position: int, size: int) -> tuple[memoryview | None, int, int]:
        """Return a record, how many messages it holds, and the offset behind it."""
        if not size & MARK:
            return self.plain(offset, position, size), 1, offset + 1
        batch = find_batch(self.log, self.queue, offset, position, size)
        if batch is None:
            self.report(offset, position, size)
            return None, 0, end_of_batch(self.queue, offset, position)
        return batch.record, batch.following - batch.first, batch.following
