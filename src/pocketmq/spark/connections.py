"""Connections that a worker process keeps: Spark uses its processes again, task after task."""

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
    """Give this process's reader of a cluster; it is made once and never closed."""
    key = (os.getpid(), reach, group)  # a fork must not use its parent's sockets
    with _lock:
        if key not in _readers:
            _readers[key] = RecordReader(reach.client(), group=group, patience=reach.retry_timeout)
        return _readers[key]


def settle() -> None:
    """Take what is loaded by now out of the garbage collector's sight, once for each process.

    Spark's workers collect after every task, which looks at all modules: 37 ms of nothing.
    """
    global _settled  # noqa: PLW0603 - one process, one heap
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()
