"""Where each message of a queue lies in the commit log, by queue offset.

Entries live in extents: runs that double in length as the queue grows, cut from shared files. A
queue with one message costs 640 bytes of file, one with millions a few hundred extents; in memory
a queue is one small object, whatever its length. Everything below `next_offset` was written here.
An entry of size 0 stands for a message that was lost; its position is that of the next one, so
that positions never fall as offsets rise.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from pocketmq.errors import StoreError
from pocketmq.store.extents import ENTRY_BYTES, LONGEST, SHORTEST, Extent, ExtentFiles

_NONE = memoryview(b"")
_first = attrgetter("first")
_UNCHECKED = (-1, 0, 0)
_LOOK_BACK = 1024
"""Entries that are checked again: more than a damaged page of the file holds."""


class Index:
    """What all queues share. Belongs to the writer's thread."""

    def __init__(self, files: ExtentFiles) -> None:
        self.files = files
        self.first_kept = 0  # entries that point before this position of the log are gone
        self.dirty: set[QueueIndex] = set()  # queues that the next checkpoint must record
        self.touched: set[int] = set()  # files written to and left since the last checkpoint


class QueueIndex:
    """One queue's entries. Belongs to the writer's thread."""

    __slots__ = (
        "_bytes", "_checked", "_index", "_limit", "_min", "_positions", "_positions_at", "_sizes",
        "_sizes_at", "_tags", "_tags_at", "_trimmed", "extents", "next_offset", "number",
        "queue_id", "topic", "waiting",
    )  # fmt: skip

    def __init__(self, index: Index, number: int, topic: str, queue_id: int) -> None:
        self.number = number
        self.topic = topic
        self.queue_id = queue_id
        self.next_offset = 0
        self.extents: list[Extent] = []
        self.waiting = 0  # suspended pulls: the broker counts them here, to skip idle queues
        self._checked = _UNCHECKED
        self._index = index
        self._min = 0
        self._trimmed = 0  # the `first_kept` that `_min` was found for
        self._rest_on_nothing()

    @property
    def min_offset(self) -> int:
        """The offset of the oldest message still kept, or the next one if there is none."""
        if self._trimmed < self._index.first_kept:
            self.trim()
        return self._min

    def append(self, position: int, size: int, tag: int) -> None:
        """Add the next message; raise `StoreFull` if there is no space, nothing changed then."""
        offset = self.next_offset
        if offset >= self._limit:
            self._grow(1)
        self._positions[self._positions_at + offset] = position
        self._tags[self._tags_at + offset] = tag
        self._sizes[self._sizes_at + offset] = size
        self.next_offset = offset + 1

    def append_many(
        self, positions: Sequence[int], sizes: Sequence[int], tags: Sequence[int]
    ) -> None:
        """Add several messages, all of them or, when `StoreFull` is raised, none."""
        before, done, count = self.next_offset, 0, len(positions)
        columns = array("Q", positions), array("q", tags), array("I", sizes)
        try:
            while done < count:
                offset = self.next_offset
                if offset >= self._limit:
                    self._grow(count - done)
                step = min(self._limit - offset, count - done)
                for column, view, at in zip(
                    columns,
                    (self._positions, self._tags, self._sizes),
                    (self._positions_at, self._tags_at, self._sizes_at),
                    strict=True,
                ):
                    view[at + offset : at + offset + step] = memoryview(column)[done : done + step]
                self.next_offset += step
                done += step
        except StoreError:
            self.truncate(before)
            raise

    def append_columns(self, count: int, positions: bytes, tags: bytes, sizes: bytes) -> None:
        """Add several messages whose columns are in this machine's form, all of them or none.

        Raises `StoreFull` if there is no space.
        """
        before = self.next_offset
        if before + count > self._limit:
            self.append_many(
                memoryview(positions).cast("Q"),
                memoryview(sizes).cast("I"),
                memoryview(tags).cast("q"),
            )
            return
        after = before + count
        place, count8 = self._bytes, 8 * count
        at = 8 * (self._positions_at + before)
        place[at : at + count8] = positions
        at = 8 * (self._tags_at + before)
        place[at : at + count8] = tags
        at = 4 * (self._sizes_at + before)
        place[at : at + 4 * count] = sizes
        self.next_offset = after

    def place(self, offset: int, position: int, size: int, tag: int, *, losses: int) -> bool:
        """Put a message found by recovery at its own offset; return whether it belongs there.

        Before it at most `losses` others may be missing. A place that is taken stays as it is.
        """
        missing = offset - self.next_offset
        if missing > losses:
            return False
        if missing < 0:
            return self._fill(offset, position, size, tag)
        for _ in range(missing):
            self.append(position, 0, 0)
        self.append(position, size, tag)
        return True

    def lose_until(self, offset: int, position: int) -> None:
        """Add entries of lost messages up to an offset; new ones come at or behind a position."""
        if not self.extents:
            self._min = self.next_offset = offset  # nothing of the queue is left
        while self.next_offset < offset:
            self.append(position, 0, 0)

    def truncate(self, offset: int) -> None:
        """Drop the newest messages, from an offset on, that turned out not to be stored."""
        self.next_offset = offset
        self._checked = _UNCHECKED
        freed = []
        while self.extents and self.extents[-1].first >= offset:
            freed.append(self.extents.pop())
        self._index.files.free(freed)
        if self.extents:
            self._use(self.extents[-1])
        else:
            self._rest_on_nothing()

    def entries(self, offset: int, count: int) -> tuple[list[int], list[int]]:
        """Return positions and sizes of up to `count` messages from an offset on."""
        if self.extents and offset >= self.extents[-1].first:  # the common case
            stop = min(offset + count, self.next_offset)
            at, sizes_at = self._positions_at, self._sizes_at
            return (
                self._positions[at + offset : at + stop].tolist(),
                self._sizes[sizes_at + offset : sizes_at + stop].tolist(),
            )
        positions: list[int] = []
        sizes: list[int] = []
        for extent, start, stop in self._runs(offset, count):
            file = self._index.files.file(extent.file)
            at = extent.place // 8 - extent.first
            positions += file.positions[at + start : at + stop].tolist()
            at = (extent.place + 16 * extent.entries) // 4 - extent.first
            sizes += file.sizes[at + start : at + stop].tolist()
        return positions, sizes

    def tags(self, offset: int, count: int) -> list[int]:
        """Return the tag codes of up to `count` messages from an offset on."""
        tags: list[int] = []
        for extent, start, stop in self._runs(offset, count):
            at = extent.place // 8 + extent.entries - extent.first
            tags += self._index.files.file(extent.file).tags[at + start : at + stop].tolist()
        return tags

    def position(self, offset: int) -> int | None:
        """Return where a message lies in the log (or the next one, if it was lost)."""
        positions, _ = self.entries(offset, 1) if offset >= self._min else ([], [])
        return positions[0] if positions else None

    def first_behind(self, position: int) -> int:
        """Return the offset of the first message that lies at or behind a position of the log."""
        low, high = self.min_offset, self.next_offset
        while low < high:
            middle = (low + high) // 2
            if (self.position(middle) or 0) < position:
                low = middle + 1
            else:
                high = middle
        return low

    def was_checked(self, period: int, offset: int, end: int) -> None:
        """Remember that the records from an offset up to another one are sound.

        One stretch is remembered, which readers in order make longer.
        """
        known, low, high = self._checked
        if known == period and low <= offset <= high:
            offset, end = low, max(end, high)
        self._checked = period, offset, end

    def is_checked(self, period: int, offset: int, end: int) -> bool:
        """Return whether these records were found sound in the same period."""
        known, low, high = self._checked
        return known == period and low <= offset and end <= high

    def restore(self, extents: list[Extent], min_offset: int, next_offset: int) -> None:
        """Take over what a checkpoint recorded."""
        self.extents = extents
        self._min, self.next_offset = min_offset, next_offset
        if extents:
            self._use(extents[-1])

    def forget(self) -> None:
        """Free all index space: the queue was deleted, and reads as empty from now on."""
        self._index.files.free(self.extents)
        self._index.dirty.discard(self)
        self.extents = []
        self.number = self._min = self.next_offset = 0
        self._checked = _UNCHECKED
        self._rest_on_nothing()

    def trim(self) -> None:
        """Move the lower end behind what the log no longer keeps, and free whole extents."""
        kept = self._trimmed = self._index.first_kept
        low, high = self._min, self.next_offset
        if low == high or self.entries(low, 1)[0][0] >= kept:
            return
        low = self._min = self._first_from(kept, low, high)
        self._index.dirty.add(self)
        gone = len(self.extents) if low == self.next_offset else 0
        while gone < len(self.extents) and self.extents[gone].end <= low:
            gone += 1
        self._index.files.free(self.extents[:gone])
        del self.extents[:gone]
        if not self.extents:
            self._rest_on_nothing()

    def files_in_use(self) -> set[int]:
        """Return the number of the file that is being written to."""
        return {self.extents[-1].file} if self.extents else set()

    def _first_from(self, kept: int, lowest: int, high: int) -> int:
        """Return the first of these offsets whose record lies at or behind a position of the log.

        A damaged entry may have misled the search: then one before what it found lies behind the
        position, too, and the search continues below that one. Nothing sound is left out.
        """
        while True:
            low = lowest
            while low < high:
                middle = (low + high) // 2
                if self.entries(middle, 1)[0][0] < kept:
                    low = middle + 1
                else:
                    high = middle
            start = max(lowest, low - _LOOK_BACK)
            before, _ = self.entries(start, low - start)
            high = next((start + n for n, at in enumerate(before) if at >= kept), -1)
            if high < 0:
                return low

    def _runs(self, offset: int, count: int) -> list[tuple[Extent, int, int]]:
        """Return the extents that hold a range, each with the part of it that it holds."""
        stop = min(offset + count, self.next_offset)
        if offset >= stop:
            return []
        newest = self.extents[-1]
        if offset >= newest.first:  # the common case
            return [(newest, offset, stop)]
        at = bisect_right(self.extents, offset, key=_first) - 1
        if at >= 0 and stop <= self.extents[at].end:
            return [(self.extents[at], offset, stop)]
        return [
            (extent, max(offset, extent.first), min(stop, extent.end))
            for extent in self.extents[max(at, 0) :]
            if extent.first < stop
        ]

    def _fill(self, offset: int, position: int, size: int, tag: int) -> bool:
        """Fill the entry of a message that was considered lost."""
        for extent, _, _ in self._runs(offset, 1) if offset >= self._min else ():
            file = self._index.files.file(extent.file)
            at = offset - extent.first
            sizes_at = (extent.place + 16 * extent.entries) // 4 + at
            if file.sizes[sizes_at] == 0:
                file.positions[extent.place // 8 + at] = position
                file.tags[extent.place // 8 + extent.entries + at] = tag
                file.sizes[sizes_at] = size
                return True
        return False

    def _grow(self, wanted: int) -> None:
        """Take a further extent: twice the last one, within bounds."""
        if not self.number:
            raise StoreError(f"queue {self.queue_id} of {self.topic} has been deleted")
        entries = min(LONGEST, 2 * self.extents[-1].entries) if self.extents else SHORTEST
        while entries < wanted and entries < LONGEST:
            entries *= 2
        extent = self._index.files.allocate(self.number, self.next_offset, entries)
        # The next checkpoint must also sync the file that this queue leaves now.
        self._index.touched |= self.files_in_use()
        self.extents.append(extent)
        self._use(extent)

    def _use(self, extent: Extent) -> None:
        file = self._index.files.file(extent.file)
        self._limit = extent.end
        self._bytes = file.file.view
        self._positions, self._tags, self._sizes = file.positions, file.tags, file.sizes
        self._positions_at = extent.place // 8 - extent.first
        self._tags_at = self._positions_at + extent.entries
        self._sizes_at = (extent.place + 16 * extent.entries) // 4 - extent.first

    def _rest_on_nothing(self) -> None:
        self._limit = 0
        self._bytes = self._positions = self._tags = self._sizes = _NONE
        self._positions_at = self._tags_at = self._sizes_at = 0


assert ENTRY_BYTES == 8 + 8 + 4, "the columns above"
