"""Stores in memory: time is virtual here, so nothing should wait for a real disk."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_MEMORY = Path("/dev/shm")
_ENOUGH = 2 << 30


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Give a folder of the file system in memory, where there is one that is large enough."""
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH
    with TemporaryDirectory(prefix="pocketmq-", dir=_MEMORY if roomy else None) as folder:
        yield Path(folder)
