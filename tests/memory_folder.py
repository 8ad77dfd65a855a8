"""A folder in memory, for stores whose disk is not what a test is about: a disk may be slow."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_MEMORY = Path("/dev/shm")
_ENOUGH = 2 << 30


@contextmanager
def memory_folder() -> Iterator[Path]:
    """Yield a folder of the file system in memory, where there is one that is large enough."""
    roomy = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH
    with TemporaryDirectory(prefix="pocketmq-", dir=_MEMORY if roomy else None) as folder:
        yield Path(folder)
