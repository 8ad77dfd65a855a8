"""The directory of a store: whose it is, and that only one broker works in it."""

import fcntl
import os
from pathlib import Path

from pocketmq.errors import StoreCorrupt, StoreInUse
from pocketmq.store.disk import store_error, sync_folder

METADATA = "meta.sqlite"
_JAVA = ("commitlog", "consumequeue", "abort")


class Directory:
    """A directory that is ours until `close`, or until this process ends in whatever way."""

    def __init__(self, path: Path) -> None:
        """Take a directory, made if it is missing.

        Raises `StoreInUse` if another broker has it, `StoreCorrupt` if it is not a PocketMQ
        store's, `StoreFull` or `StoreFailed` if the system refuses it.
        """
        self.path = path
        if not (path / METADATA).exists():
            refuse_java(path)
        new = [folder for folder in (path, *path.parents) if not folder.exists()]
        try:
            path.mkdir(parents=True, exist_ok=True)
            for folder in new:
                sync_folder(folder.parent)
            self._lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise store_error(error, 0) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise StoreInUse(str(path)) from error

    def close(self) -> None:
        """Let others have it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def refuse_java(path: Path) -> None:
    """Raise `StoreCorrupt` if a directory holds what a Java broker leaves in its store."""
    found = [name for name in _JAVA if (path / name).exists()]
    if found:
        raise StoreCorrupt(
            f"{path} holds {', '.join(found)} but no {METADATA}: it looks like a Java broker's "
            "store, which PocketMQ cannot take over; choose an empty directory, or put back the "
            f"{METADATA} if it is PocketMQ's own"
        )
