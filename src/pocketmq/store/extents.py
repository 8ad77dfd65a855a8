"""Space for queue indexes, cut from shared files in runs of entries.

A run holds its entries in columns: positions, tag codes, sizes. Which run belongs to which queue is
recorded in the metadata at each checkpoint; space allocated since then is free again after a crash,
because recovery rebuilds its entries from the commit log. A run that a queue frees is reused
only after a checkpoint has recorded that: until then a crash would bring back the old checkpoint,
whose queue still refers to the run and would find another queue's entries in it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pocketmq.errors import StoreCorrupt
from pocketmq.store.disk import FileSystem, StoredFile

ENTRY_BYTES = 20
FILE_BYTES = 16 * 1024 * 1024
SHORTEST = 32
LONGEST = 16384
"""Runs have these lengths or a power of two between them."""

ExtentRow = tuple[int, int, int, int, int]
"""File, place, entries, queue number and first offset of a run; queue 0 means free."""


class Extent(NamedTuple):
    """A run of entries of one queue, from its offset `first` on."""

    first: int
    entries: int
    file: int
    place: int

    @property
    def end(self) -> int:
        """The offset behind its last entry."""
        return self.first + self.entries


class IndexFile:
    """One shared file, seen as each of the columns' types."""

    __slots__ = ("file", "positions", "sizes", "tags")

    def __init__(self, file: StoredFile) -> None:
        self.file = file
        self.positions = file.view.cast("Q")
        self.tags = file.view.cast("q")
        self.sizes = file.view.cast("I")

    def close(self) -> None:
        """Close the file."""
        self.positions.release()
        self.tags.release()
        self.sizes.release()
        self.file.close()


class Changes(NamedTuple):
    """What happened to the runs since the last checkpoint."""

    rows: dict[tuple[int, int], tuple[int, int, int]]
    freed: list[tuple[int, int, int]]


class ExtentFiles:
    """The shared files and their free space. Belongs to the writer's thread."""

    def __init__(self, disk: FileSystem, folder: str = "index") -> None:
        self.end = 0  # bytes ever taken, as if the files were one
        self._disk = disk
        self._folder = folder
        self._files: dict[int, IndexFile] = {}
        self._kept: set[int] = set()  # files that exist already, open or not
        self._free: dict[int, list[tuple[int, int]]] = {}  # entries → places
        self._changes = Changes({}, [])

    def load(self, end: int, free: Iterable[tuple[int, int, int]]) -> None:
        """Load the files as a checkpoint left them; `free` are runs of no queue.

        Raises `StoreCorrupt` if a file is missing.
        """
        self.end = end
        for name, size in self._disk.sizes(self._folder).items():
            if name.isdigit() and size == FILE_BYTES:
                self._kept.add(int(name))
            else:  # a stop while it was being made
                self._disk.remove(f"{self._folder}/{name}")
        for number in range(-(-end // FILE_BYTES)):
            if number not in self._kept:
                raise StoreCorrupt(f"{self._folder}/{number:08d} is missing or has the wrong size")
        for file, place, entries in free:
            self._free.setdefault(entries, []).append((file, place))

    def file(self, number: int) -> IndexFile:
        """Return a file, opened or made when it is first needed."""
        found = self._files.get(number)
        if found is None:
            name = f"{self._folder}/{number:08d}"
            if number in self._kept:
                file = self._disk.open(name)
            else:
                file = self._disk.create(name, FILE_BYTES)
                file.rest()
                self._kept.add(number)
            most = self._disk.most_open
            if 0 < most <= len(self._files):  # queues that still use it keep it open
                del self._files[next(iter(self._files))]
            found = self._files[number] = IndexFile(file)
        return found

    def allocate(self, queue: int, first: int, entries: int) -> Extent:
        """Return a run of entries; raise `StoreFull` if there is no space for a new file."""
        file, place = self._take(entries)
        self._changes.rows[file, place] = (entries, queue, first)
        return Extent(first, entries, file, place)

    def free(self, extents: Iterable[Extent]) -> None:
        """Free runs; they are reused only after the next checkpoint."""
        for extent in extents:
            self._changes.rows[extent.file, extent.place] = (extent.entries, 0, 0)
            self._changes.freed.append((extent.entries, extent.file, extent.place))

    def take_changes(self) -> Changes:
        """Return what a checkpoint must record, and start collecting again."""
        taken, self._changes = self._changes, Changes({}, [])
        return taken

    def put_back(self, changes: Changes) -> None:
        """Add changes again that could not be recorded; newer ones win."""
        newer = self._changes
        self._changes = Changes(changes.rows | newer.rows, changes.freed + newer.freed)

    def checkpointed(self, changes: Changes) -> None:
        """Make runs available again that a checkpoint has recorded as free."""
        for entries, file, place in changes.freed:
            self._free.setdefault(entries, []).append((file, place))

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _take(self, entries: int) -> tuple[int, int]:
        """Find space: a free run of this length, half of a longer one, or new."""
        longer = entries
        while longer <= LONGEST and not self._free.get(longer):
            longer *= 2
        if longer > LONGEST:
            return self._take_new(entries)
        file, place = self._free[longer][-1]
        self.file(file)  # may raise: before anything has changed
        self._free[longer].pop()
        while longer > entries:
            longer //= 2
            self._add_free(file, place + longer * ENTRY_BYTES, longer)
        return file, place

    def _take_new(self, entries: int) -> tuple[int, int]:
        size = entries * ENTRY_BYTES
        number, used = divmod(self.end, FILE_BYTES)
        if used + size <= FILE_BYTES:
            self.file(number)
        else:
            self.file(number + 1)
            rest = LONGEST
            while rest >= SHORTEST:  # what is left of this file serves shorter runs
                while used + rest * ENTRY_BYTES <= FILE_BYTES:
                    self._add_free(number, used, rest)
                    used += rest * ENTRY_BYTES
                rest //= 2
            number, used = number + 1, 0
        self.end = number * FILE_BYTES + used + size
        return number, used

    def _add_free(self, file: int, place: int, entries: int) -> None:
        """Add space that no queue has used since the last checkpoint."""
        self._free.setdefault(entries, []).append((file, place))
        self._changes.rows[file, place] = (entries, 0, 0)
