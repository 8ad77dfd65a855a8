"""A file system that is only memory, for a store that keeps nothing."""

import mmap
from collections.abc import Callable
from contextlib import suppress

from pocketmq.errors import StoreFailed, StoreFull
from pocketmq.store.disk import StoredFile


def _ignore(_size: int) -> None:
    """Count nothing."""


class MemoryFile:
    """A file that is only memory; pages never touched cost nothing."""

    __slots__ = ("_end", "_released", "map", "view")

    def __init__(self, size: int, released: Callable[[int], None] = _ignore) -> None:
        self._end = 0  # of what was ever written
        self._released = released
        self.map = mmap.mmap(-1, size)
        self.view = memoryview(self.map)

    def write(self, position: int, data: bytes) -> None:
        """Write bytes at a position."""
        self.view[position : position + len(data)] = data
        self._end = max(self._end, position + len(data))

    def sync(self) -> None:
        """Nothing outlives this process."""

    def cut(self, position: int) -> bool:
        """Zero the rest."""
        self.view[position:] = bytes(len(self.view) - position)
        return True

    def data_end(self, position: int) -> int:
        """Look no further than `write` ever went."""
        rest = self.map[position : max(position, self._end)]
        return position + len(rest.rstrip(b"\0"))

    def rest(self) -> None:
        """Do nothing: there is no descriptor."""

    def close(self) -> None:
        """Free the memory once it is no longer referenced."""
        if not self.map.closed:
            self._released(len(self.map))
        self.view.release()
        with suppress(BufferError):
            self.map.close()


class NoDisk:
    """Files in memory only: everything is gone with the process."""

    most_open = 0

    def __init__(self, limit: int = 0) -> None:
        """Take no more memory than `limit`; 0 for all there is."""
        self._limit = limit
        self._used = 0

    def create(self, name: str, size: int) -> StoredFile:
        """Make a new file in memory."""
        del name
        if 0 < self._limit < self._used + size:
            raise StoreFull(size)
        try:
            file = MemoryFile(size, self._release)
        except OSError as error:
            raise StoreFull(size) from error
        self._used += size
        return file

    def _release(self, size: int) -> None:
        self._used -= size

    def open(self, name: str) -> StoredFile:
        """Nothing survives to be opened."""
        raise StoreFailed(f"{name} is not kept in memory")

    def sizes(self, folder: str) -> dict[str, int]:
        """Nothing was kept."""
        del folder
        return {}

    def remove(self, name: str) -> None:
        """Do nothing: closing the file frees it."""

    def free_ratio(self) -> float:
        """Memory is bounded by retention, not by a disk."""
        return 1.0
