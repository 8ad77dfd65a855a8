"""A long run of bytes in files of fixed size, addressed by one position that never starts again.

A file's name is the position of its first byte, in RocketMQ's twenty digits. Files may differ in
size: a store may be opened with another segment size than before. Each is opened when it is first
needed. Belongs to the writer's thread.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

from pocketmq.errors import StoreCorrupt
from pocketmq.store.disk import FileSystem, StoredFile
from pocketmq.store.options import SMALLEST_SEGMENT


class Segment:
    """One file of the run."""

    __slots__ = ("_disk", "_view", "_was_opened", "end", "name", "opened", "start")

    def __init__(
        self,
        disk: FileSystem,
        name: str,
        start: int,
        end: int,
        was_opened: "Callable[[Segment], None] | None" = None,
    ) -> None:
        """Name a file; `was_opened` is called whenever it was opened to be read."""
        self.name = name
        self.start = start
        self.end = end
        self._disk = disk
        self._was_opened = was_opened
        self.opened: StoredFile | None = None
        """The file if it is open; the writer asks with every write."""
        self._view: memoryview | None = None

    @property
    def file(self) -> StoredFile:
        """The file, opened if it is not yet."""
        if self.opened is None:
            file = self._disk.open(self.name)
            self.use(file)
            if self._was_opened is not None:
                self._was_opened(self)
            return file
        return self.opened

    @property
    def view(self) -> memoryview:
        """All bytes of the file, to be read only."""
        return self.file.view.toreadonly() if self._view is None else self._view

    def use(self, file: StoredFile) -> None:
        """Take a file that is open already."""
        self.opened = file
        self._view = file.view.toreadonly()

    def forget(self) -> None:
        """Close the file until it is needed again; slices still being read keep it open."""
        if self.opened is not None:
            self.opened.rest()
            self.opened = self._view = None

    def close(self) -> None:
        """Close the file; slices of its view stay valid as long as they are referenced."""
        if self.opened is not None:
            self._view = None
            self.opened.close()


def never_used(disk: FileSystem, name: str, size: int) -> bool:
    """Return whether a file is what a stop leaves between making it and giving it its size.

    A short file that holds anything was cut short later: there may be messages in it.
    """
    if size >= SMALLEST_SEGMENT or not size:
        return not size
    file = disk.open(name)
    try:
        return file.data_end(0) == 0
    finally:
        file.close()


class Segments:
    """The files of one folder as one run of bytes from `first` to `end`."""

    def __init__(self, disk: FileSystem, folder: str, size: int) -> None:
        self.first = 0  # the first position still kept
        self._disk = disk
        self._folder = folder
        self._size = size
        self._list: list[Segment] = []
        self._starts: list[int] = []
        self._spare: Segment | None = None
        self._open: deque[Segment] = deque()  # in the order in which they were opened

    def load(self) -> None:
        """Load what an earlier run left; raise `StoreCorrupt` if a file is missing in between."""
        for name, size in self._disk.sizes(self._folder).items():
            if not (name.isascii() and name.isdigit() and len(name) == 20):
                continue
            start = int(name)
            if self._list and start != self.end:
                raise StoreCorrupt(
                    f"{self._folder}: bytes {self.end} to {start} are missing before file {name}"
                )
            path = f"{self._folder}/{name}"
            if never_used(self._disk, path, size):
                self._disk.remove(path)
                continue
            self._add(Segment(self._disk, path, start, start + size, self._was_opened))
        if self._list:
            self.first = self._list[0].start

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._list)

    @property
    def end(self) -> int:
        """The position after the last byte there is a file for."""
        return self._list[-1].end if self._list else self.first

    @property
    def oldest(self) -> Segment | None:
        """The file that is deleted first."""
        return self._list[0] if self._list else None

    def at(self, position: int) -> Segment | None:
        """Return the file that holds a position, if it is still kept."""
        index = bisect_right(self._starts, position) - 1
        if index < 0 or position >= self._list[index].end:
            return None
        return self._list[index]

    def from_position(self, position: int) -> list[Segment]:
        """Return the files that hold bytes at or behind a position."""
        return self._list[max(0, bisect_right(self._starts, position) - 1) :]

    def prepare(self) -> None:
        """Create the next file ahead of its use, so that rolling over does not wait for it."""
        if self._spare is None:
            self._spare = self._create(self._size)

    def grow(self, wanted: int) -> Segment:
        """Add a file for at least `wanted` bytes; raise `StoreFull` if there is no space."""
        segment = self._spare
        if segment is not None and segment.end - segment.start < wanted:
            self._drop_spare()
            segment = None
        if segment is None:
            segment = self._create(max(self._size, wanted))
        self._spare = None
        self._add(segment)
        self._was_opened(segment)
        return segment

    def drop_first(self) -> None:
        """Delete the oldest file."""
        segment = self._list[0]
        self._disk.remove(segment.name)
        del self._list[0], self._starts[0]
        self._leave(segment)
        self.first = self._list[0].start if self._list else segment.end
        segment.close()

    def drop_after(self, position: int) -> bool:
        """Delete files that hold nothing before a position, and zero the rest of the last one.

        Returns whether there was anything but zeros.
        """
        if not self._list:
            self.first = position
        # From the newest on: a crash in between leaves a shorter log, never one with a hole.
        while len(self._list) > 1 and self._list[-1].start >= position:
            segment = self._list.pop()
            self._starts.pop()
            self._disk.remove(segment.name)
            self._leave(segment)
            segment.close()
        if self._list and position < self.end:
            last = self._list[-1]
            return last.file.cut(position - last.start)
        return False

    def close(self) -> None:
        """Close all files; a spare one that was never used is deleted."""
        self._drop_spare()
        for segment in self._list:
            segment.close()

    def _create(self, size: int) -> Segment:
        start = self.end
        name = f"{self._folder}/{start:020d}"
        segment = Segment(self._disk, name, start, start + size, self._was_opened)
        segment.use(self._disk.create(name, size))
        return segment

    def _was_opened(self, segment: Segment) -> None:
        """Close the file that was opened first, if many are open: each one costs a descriptor.

        The newest two stay, which are written to.
        """
        self._open.append(segment)
        most = self._disk.most_open
        while 0 < most < len(self._open):
            oldest = self._open.popleft()
            if oldest in self._list[-2:]:
                self._open.append(oldest)
                if all(each in self._list[-2:] for each in self._open):
                    return
            else:
                oldest.forget()

    def _leave(self, segment: Segment) -> None:
        """Forget that a file was open."""
        with suppress(ValueError):
            self._open.remove(segment)

    def _add(self, segment: Segment) -> None:
        self._list.append(segment)
        self._starts.append(segment.start)

    def _drop_spare(self) -> None:
        if self._spare is not None:
            self._disk.remove(self._spare.name)
            self._spare.close()
            self._spare = None
