"""Connections that a worker process keeps: Spark uses its processes again, task after task."""

import atexit
import gc
import os
import threading

from pocketmq.blocking.record_reader import RecordReader
from pocketmq.model.names import TOOLS_GROUP
from pocketmq.spark.options import Reach

_readers: dict[tuple[int, Reach, str], RecordReader] = {}
_lock = threading.Lock()
_settled = False


def reader_of(reach: Reach, group: str = TOOLS_GROUP) -> RecordReader:
    """Give this process's reader of a cluster; made once, closed when the process ends."""
    key = (os.getpid(), reach, group)  # a fork must not use its parent's sockets
    with _lock:
        if key not in _readers:
            _readers[key] = RecordReader(reach.client(), group=group, patience=reach.retry_timeout)
        return _readers[key]


@atexit.register
def close_all() -> None:
    """Close this process's readers."""
    with _lock:
        for key in [key for key in _readers if key[0] == os.getpid()]:
            _readers.pop(key).close()


def settle() -> None:
    """Take what is loaded by now out of the garbage collector's sight, once for each process.

    Spark's workers collect after every task, which looks at all modules: 37 ms of nothing.
    """
    global _settled  # noqa: PLW0603 - one process, one heap
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()
