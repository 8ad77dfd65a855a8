"""A file that is either the old one or the new one, whatever happens in between."""

import os
from pathlib import Path

from pocketmq.errors import StoreError


def read_saved(path: Path) -> bytes | None:
    """Return the file's content, or None if there is none. Raises `StoreError`."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error


def replace_saved(path: Path, content: bytes) -> None:
    """Write the file so that a crash leaves the old content or the new. Raises `StoreError`."""
    beside = path.with_name(path.name + ".new")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
