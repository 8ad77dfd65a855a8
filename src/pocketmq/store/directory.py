"""The directory of a store, and the lock by which only one broker works in it.

The lock is `flock` on the file `lock`: the kernel releases it when the process ends in whatever
way, so that a crash never leaves a stale lock, as a file with a process id would. It is tied to the
open file: the descriptor stays open as long as the store does, and the file is never replaced.
"""

import logging
import os
from pathlib import Path

from pocketmq.errors import StoreCorrupt, StoreFailed, StoreInUse
from pocketmq.host import lock_file
from pocketmq.store.disk import OWNER_ONLY, OWNER_ONLY_FOLDER, store_error, sync_folder

log = logging.getLogger("pocketmq.store")

METADATA = "meta.sqlite"
_FOLDERS = ("commitlog", "index", "keys")
_JAVA = ("commitlog", "consumequeue", "abort")


class Directory:
    """A locked store directory, until `close` or the end of this process."""

    def __init__(self, path: Path) -> None:
        """Lock a directory, created if it is missing.

        Raises `StoreInUse` if another broker has it, `StoreCorrupt` if it is not a PocketMQ
        store's, `StoreFull` or `StoreFailed` if the system refuses it.
        """
        self.path = path
        if not (path / METADATA).exists():
            refuse_java(path)
        new = [folder for folder in (path, *path.parents) if not folder.exists()]
        try:
            path.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
            for folder in new:
                sync_folder(folder.parent)
            self._lock_path = str(path / "lock")  # looked at twice a second
            self._lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        except OSError as error:
            raise store_error(error, 0) from error
        try:
            lock_file(self._lock)
        except OSError as error:
            self.close()
            raise StoreInUse(str(path)) from error
        _tighten(path)

    @property
    def has_log(self) -> bool:
        """Whether there are messages already, or were."""
        log = self.path / "commitlog"
        return log.is_dir() and any(file.stat().st_size for file in log.iterdir())

    def verify(self) -> None:
        """Raise `StoreFailed` if the directory is not at its path any more.

        It was moved, deleted or replaced. The lock file shows it: as long as it is open, no other
        file can have its inode number.
        """
        mine = os.fstat(self._lock)
        try:
            there = os.stat(self._lock_path)  # noqa: PTH116 - a path object is made anew each time
        except OSError as error:
            reason = error.strerror
        else:
            if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
                return
            reason = "another one is in its place"
        raise StoreFailed(f"the data directory {self.path} was moved or deleted ({reason})")

    def failure(self) -> StoreFailed | None:
        """Return what `verify` raises, after logging it; None if the directory is in its place."""
        try:
            self.verify()
        except StoreFailed as error:
            # Without a traceback: the directory was moved or removed, no code failed.
            log.error("store failed, refusing all messages: %s", error)  # noqa: TRY400 - see above
            return error
        return None

    def close(self) -> None:
        """Release the lock."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _tighten(path: Path) -> None:
    """Make folders and files of the store private, which earlier versions let others read.

    The directory itself stays as it is: it may have been there before, with a mode on purpose.
    """
    try:
        for name in _FOLDERS:
            if (path / name).is_dir():
                _make_private(path / name, OWNER_ONLY_FOLDER)
                for file in (path / name).iterdir():
                    _make_private(file, OWNER_ONLY)
        for name in ("lock", METADATA, f"{METADATA}-wal", f"{METADATA}-shm"):
            if (path / name).exists():
                _make_private(path / name, OWNER_ONLY)
    except OSError as error:
        log.warning("store files cannot be made private: directory=%s error=%s", path, error)


def _make_private(path: Path, mode: int) -> None:
    if path.stat().st_mode & 0o077:
        path.chmod(mode)


def refuse_java(path: Path) -> None:
    """Raise `StoreCorrupt` if a directory holds what a Java broker leaves in its store."""
    found = [name for name in _JAVA if (path / name).exists()]
    if found:
        raise StoreCorrupt(
            f"{path} holds {', '.join(found)} but no {METADATA}: it looks like a Java broker's "
            "store, which PocketMQ cannot take over; choose an empty directory, or put back the "
            f"{METADATA} if it is PocketMQ's own"
        )
