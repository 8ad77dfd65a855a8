"""Small scripts that Spark starts instead of Java and of Python, in a directory of this user."""

import os
import tempfile
from hashlib import sha256
from pathlib import Path

from pocketmq.errors import CannotStart

MARK = "# Written by pocketmq: starts "
"""Begins the line that names the program behind a script."""
_END = " for Spark."


def started_by(path: Path) -> Path | None:
    """Return the program that a script of ours starts; None for any other file."""
    try:
        with path.open("rb") as file:
            if MARK.encode() not in file.read(200):
                return None
        lines = path.read_text().splitlines()
    except OSError:
        return None
    line = next(line for line in lines if line.startswith(MARK))
    return Path(line.removeprefix(MARK).removesuffix(_END))


def directory_for(kind: str, content: str) -> Path:
    """Return a directory for scripts of this content, which only this user can write to.

    Raises `CannotStart`.
    """
    owner = os.getuid()
    parent = Path(tempfile.gettempdir()) / f"pocketmq-{kind}-{owner}"
    home = parent / sha256(content.encode()).hexdigest()[:16]
    try:
        parent.mkdir(mode=0o700, exist_ok=True)
        if parent.is_symlink() or parent.stat().st_uid != owner:
            raise CannotStart("Spark", f"{parent} belongs to another user; remove it")
        (home / "bin").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(home, error) from error
    return home


def write(path: Path, text: str, mode: int) -> None:
    """Write a file at once: another process may be about to use it. Raises `CannotStart`."""
    try:
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as draft:
            draft.write(text)
        Path(draft.name).chmod(mode)
        Path(draft.name).replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> CannotStart:
    return CannotStart("Spark", f"cannot write to {path}: {error.strerror}")
