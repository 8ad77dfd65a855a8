"""Disks that fail: a process that ends at any step, a machine that loses its power, no room."""

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pocketmq.store import MessageStore
from pocketmq.store.disk import Disk, DiskFile
from pocketmq.store.flusher import Flusher, Outcome

PAGE = 4096


class ProcessEnded(BaseException):
    """Stands for `kill -9`: nothing in the store may catch it."""


class MortalDisk(Disk):
    """Ends the process at the n-th step that changes the disk; a write may be done in part."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.steps_left: int | None = None
        self.torn = 0  # of a thousand: how much of the last write is done

    def step(self) -> bool:
        """Count a step; tell whether it is the last one."""
        if self.steps_left is None:
            return False
        self.steps_left -= 1
        if self.steps_left < 0:
            raise ProcessEnded
        return self.steps_left == 0

    def create(self, name: str, size: int) -> Any:
        if self.step():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            os.truncate(path, size * self.torn // 1000)
            raise ProcessEnded
        return super().create(name, size)

    def remove(self, name: str) -> None:
        last = self.step()
        super().remove(name)
        if last:
            raise ProcessEnded

    def _file(self, path: Path, size: int, *, create: bool = False) -> DiskFile:
        return MortalFile(self, path, size, create=create)


class MortalFile(DiskFile):
    __slots__ = ("_disk",)

    def __init__(self, disk: MortalDisk, path: Path, size: int, *, create: bool) -> None:
        self._disk = disk
        super().__init__(path, size, create=create)

    def write(self, position: int, data: bytes) -> None:
        if self._disk.step():
            super().write(position, data[: len(data) * self._disk.torn // 1000])
            raise ProcessEnded
        super().write(position, data)

    def sync(self) -> None:
        if self._disk.step():
            raise ProcessEnded


def make_metadata_mortal(store: MessageStore, disk: MortalDisk) -> None:
    """Let the process also end before, in and after each transaction."""
    transaction = store.metadata._transaction

    @contextmanager
    def mortal() -> Iterator[Any]:
        if disk.step():
            raise ProcessEnded
        with transaction() as connection:
            yield connection
            if disk.step():
                raise ProcessEnded
        if disk.step():
            raise ProcessEnded

    store.metadata._transaction = mortal  # type: ignore[method-assign]


def abandon(store: MessageStore) -> None:
    """Let go of a store as the end of its process does: nothing more is written."""
    if isinstance(store.disk, MortalDisk):
        store.disk.steps_left = None
    for segment in store.log.segments:
        segment.close()
    spare = store.log.segments._spare
    if spare is not None:
        spare.close()
    store.queues.files.close()
    store.metadata.close()
    if store._directory is not None:
        store._directory.close()


class PowerDisk(Disk):
    """Knows what would be left of each file if the power went: what was synced, the rest by chance."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.files: dict[Path, PowerFile] = {}

    def remove(self, name: str) -> None:
        self.files.pop(self.root / name, None)
        super().remove(name)

    def cut_power(self, unit: int, survives: Callable[[], bool]) -> None:
        """Put each unsynced unit of each file back to what was synced, unless it survives."""
        stride = unit * 128  # most of a file is as it was
        for path, file in self.files.items():
            now, safe = path.read_bytes(), file.safe
            assert len(now) == len(safe)
            with path.open("r+b") as left:
                for start in range(0, len(now), stride):
                    if now[start : start + stride] == safe[start : start + stride]:
                        continue
                    for at in range(start, min(start + stride, len(now)), unit):
                        old = safe[at : at + unit]
                        if now[at : at + unit] != old and not survives():
                            left.seek(at)
                            left.write(old)
        self.files.clear()

    def _file(self, path: Path, size: int, *, create: bool = False) -> DiskFile:
        file = PowerFile(path, size, create=create)
        self.files[path] = file
        return file


class PowerFile(DiskFile):
    __slots__ = ("safe",)

    def __init__(self, path: Path, size: int, *, create: bool) -> None:
        super().__init__(path, size, create=create)
        self.safe = bytes(size) if create else bytes(self.view)  # a new one is all zeros

    def sync(self) -> None:
        self.safe = bytes(self.view)


class SteppedFlusher(Flusher):
    """Runs each job when a test says so, so that the power can go between any two of them."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[tuple[Callable[[], None], Outcome]] = deque()

    def submit(self, job: Callable[[], None], outcome: Outcome) -> None:
        self._waiting.append((job, outcome))

    def step(self) -> bool:
        """Run the next job; return whether there was one."""
        if not self._waiting:
            return False
        super().submit(*self._waiting.popleft())
        return True


class FullDisk(Disk):
    """Has no room while `full`; `tears` lets a refused write leave its first half behind."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.full = False
        self.broken = False

    def create(self, name: str, size: int) -> Any:
        return super().create(name, size)

    def _file(self, path: Path, size: int, *, create: bool = False) -> DiskFile:
        if create and self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return FullFile(self, path, size, create=create)


class FullFile(DiskFile):
    __slots__ = ("_disk",)

    def __init__(self, disk: FullDisk, path: Path, size: int, *, create: bool) -> None:
        self._disk = disk
        super().__init__(path, size, create=create)

    def write(self, position: int, data: bytes) -> None:
        if self._disk.full:
            super().write(position, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(position, data)

    def sync(self) -> None:
        if self._disk.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync()
