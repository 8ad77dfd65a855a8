"""Access to the file system: every step that a crash can cut short goes through here.

`Disk` works on real files below one directory; `no_disk` keeps the same files in memory. Tests put
a disk in their place that stops at the n-th step, so that recovery is tried at each of them.
SQLite keeps its own file and does not come through here.
"""

import errno
import mmap
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from pocketmq.errors import StoreError, StoreFailed, StoreFull
from pocketmq.host import open_files_limit

OWNER_ONLY = 0o600
OWNER_ONLY_FOLDER = 0o700
"""Modes of files and folders of a store: messages are private."""
_MOST_OPEN = 24
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_ZEROS = bytes(1 << 20)
_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has only the second


def store_error(error: OSError, wanted: int) -> StoreError:
    """Translate the system's error; space for `wanted` bytes was requested."""
    if error.errno in _NO_ROOM:
        return StoreFull(wanted)
    return StoreFailed(str(error))


class StoredFile(Protocol):
    """A file of fixed size: written at positions, read (and changed) through a view.

    Slices of the view stay valid after `close`, for as long as they are referenced.
    """

    view: memoryview
    map: mmap.mmap
    """The same bytes, for searching and for slices that are copies."""

    def write(self, position: int, data: bytes) -> None:
        """Write bytes at a position; when this returns they survive the end of the process."""

    def sync(self) -> None:
        """Return when everything written survives a power cut. Any thread may call.

        Raises OSError if the device failed, `StoreFailed` if it was not even asked.
        """

    def cut(self, position: int) -> bool:
        """Zero the file from a position on, and sync; return whether anything changed."""

    def data_end(self, position: int) -> int:
        """Return where the last byte behind a position ends that is not zero, or the position."""

    def rest(self) -> None:
        """Release what is only needed for writing: nothing will be written for now."""

    def close(self) -> None:
        """Close the file."""


class FileSystem(Protocol):
    """What the store needs of a disk."""

    most_open: int
    """Files of a kind that should be open at once; 0 if a file cannot be opened a second time."""

    def create(self, name: str, size: int) -> StoredFile:
        """Create a file full of zeros that survives a power cut.

        Raises `StoreFull` if there is no space, and leaves nothing behind then.
        """

    def open(self, name: str) -> StoredFile:
        """Open an existing file at the size it has."""

    def sizes(self, folder: str) -> dict[str, int]:
        """Return a folder's files and their sizes, in order of their names."""

    def remove(self, name: str) -> None:
        """Delete a file for good."""

    def free_ratio(self) -> float:
        """Return the part of the file system that is free, from 0 to 1."""


class DiskFile:
    """A real file, preallocated so that writing into it cannot run out of space."""

    __slots__ = ("_closed", "_fd", "_lock", "map", "path", "size", "view")

    def __init__(self, path: Path, size: int, *, create: bool = False) -> None:
        self.path = path
        self.size = size
        self._closed = False
        self._lock = threading.Lock()  # between a sync on the flusher's thread and close
        self._fd = os.open(path, os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0), OWNER_ONLY)
        try:
            if create:
                _reserve(self._fd, size)
                os.fsync(self._fd)
            self.map = mmap.mmap(self._fd, size)
        except BaseException:
            self._drop_descriptor()
            if create:
                path.unlink(missing_ok=True)
            raise
        self.view = memoryview(self.map)
        if not create:
            self.rest()

    def write(self, position: int, data: bytes) -> None:
        """Write bytes at a position, all of them or raise an error."""
        if self._fd < 0:
            self._fd = os.open(self.path, os.O_RDWR)
        written = os.pwrite(self._fd, data, position)
        while written < len(data):
            written += os.pwrite(self._fd, memoryview(data)[written:], position + written)

    def sync(self) -> None:
        """Write what is dirty to the device, whether it came by `write` or through the view."""
        with self._lock:
            if self._closed:
                return
            if sys.platform != "linux":  # Linux counts a mapping's dirty pages as the file's own
                self.map.flush()
            if self._fd >= 0:
                _sync_data(self._fd)
                return
            try:
                fd = os.open(self.path, os.O_RDWR)
            except OSError as error:  # out of descriptors, say: nothing is lost, and not for good
                raise StoreFailed(f"{self.path} cannot be opened for a sync: {error}") from error
            try:
                _sync_data(fd)
            finally:
                os.close(fd)

    def cut(self, position: int) -> bool:
        """Zero what is not zero yet, and sync: after a power cut it must not come back."""
        end = self.data_end(position)
        if end == position:
            return False
        for start in range(position, end, len(_ZEROS)):
            self.write(start, _ZEROS[: end - start])
        self.sync()
        return True

    def data_end(self, position: int) -> int:
        """Ask the file system, which knows the blocks that were never written, then read."""
        end = position
        fd = os.open(self.path, os.O_RDONLY)
        try:
            while end < self.size:
                start = os.lseek(fd, end, os.SEEK_DATA)
                end = os.lseek(fd, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:
                end = self.size
        finally:
            os.close(fd)
        while end > position:
            start = max(position, end - len(_ZEROS))
            rest = self.map[start:end]
            if rest != _ZEROS[: end - start]:
                return start + len(rest.rstrip(b"\0"))
            end = start
        return end

    def rest(self) -> None:
        """Close the descriptor; the mapping has its own, and `write` opens a new one."""
        if self._lock.acquire(blocking=False):  # a running sync is not worth waiting for
            try:
                self._drop_descriptor()
            finally:
                self._lock.release()

    def close(self) -> None:
        """Release the mapping; slices that are still read keep it alive until they go."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._drop_descriptor()
                self.view.release()
                with suppress(BufferError):
                    self.map.close()

    def __del__(self) -> None:
        """Close the descriptor if a sync was running when the last reference went."""
        if getattr(self, "_fd", -1) >= 0:
            os.close(self._fd)

    def _drop_descriptor(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _reserve(fd: int, size: int) -> None:
    """Allocate every block now: a full disk must show here, not as a signal later."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
    else:  # macOS
        os.ftruncate(fd, size)


class Disk:
    """Files below one directory."""

    def __init__(self, root: Path, verify: Callable[[], None] | None = None) -> None:
        """`verify` raises `StoreFailed` if the directory is not the one that was opened."""
        self.root = root
        self.most_open = _most_open()
        self._verify = verify

    def create(self, name: str, size: int) -> StoredFile:
        """Create a file; its name is durable before anything can be written to it."""
        path = self.root / name
        if self._verify is not None:
            self._verify()  # never begin a second store where the first one was
        try:
            if not path.parent.exists():
                path.parent.mkdir(OWNER_ONLY_FOLDER, parents=True)
                sync_folder(path.parent.parent)
            file = self._file(path, size, create=True)
        except OSError as error:
            raise store_error(error, size) from error
        try:
            sync_folder(path.parent)
        except OSError as error:
            file.close()
            path.unlink(missing_ok=True)
            raise store_error(error, size) from error
        return file

    def open(self, name: str) -> StoredFile:
        """Open an existing file at the size it has."""
        path = self.root / name
        try:
            return self._file(path, path.stat().st_size)
        except (OSError, ValueError) as error:  # an empty file cannot be mapped
            raise StoreFailed(f"{path}: {error}") from error

    def sizes(self, folder: str) -> dict[str, int]:
        """List a folder's files in order of their names."""
        try:
            with os.scandir(self.root / folder) as entries:
                found = {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise store_error(error, 0) from error
        return dict(sorted(found.items()))

    def remove(self, name: str) -> None:
        """Delete a file, so that it does not come back after a power cut."""
        path = self.root / name
        try:
            path.unlink(missing_ok=True)
            sync_folder(path.parent)
        except OSError as error:
            raise store_error(error, 0) from error

    def free_ratio(self) -> float:
        """Return the part of the file system that is free, from 0 to 1.

        As Java and `df` count it: of what is in use and what we may still take, without the
        blocks kept for the system's administrator.
        """
        state = os.statvfs(self.root)
        whole = state.f_blocks - state.f_bfree + state.f_bavail
        return state.f_bavail / whole if whole else 1.0

    def _file(self, path: Path, size: int, *, create: bool = False) -> DiskFile:
        return DiskFile(path, size, create=create)


def _most_open() -> int:
    """Return how many files of a kind may be open: each mapping has a descriptor of its own.

    Servers leave 64 descriptors for files, or half of all if there are fewer than 128: enough for
    this many of the log and of the index, and for what else is open.
    """
    files = open_files_limit()
    return _MOST_OPEN if files is None else min(_MOST_OPEN, max(4, files // 16))


def sync_folder(path: Path) -> None:
    """Return when the names in a folder survive a power cut."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
