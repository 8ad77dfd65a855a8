"""Connections that a worker process keeps: Spark reuses its processes, task after task.

Keys hold the process id: a forked worker must never use the sockets of its parent.
"""

import atexit
import gc
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pocketmq.balance.profile import COMPRESS_FROM
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.errors import MQError, ResponseCode
from pocketmq.model.names import TOOLS_GROUP
from pocketmq.spark.options import Reach

if TYPE_CHECKING:
    from pocketmq.blocking.record_sender import RecordSender

T = TypeVar("T")

SEND_TIMEOUT = 10.0
NEVER = 2**31 - 1
"""A size from which bodies are compressed that none has."""
PAUSE = 0.2
LONGEST_PAUSE = 2.0

_readers: dict[tuple[int, Reach, str], RecordReader] = {}
_senders: "dict[tuple[int, Reach, str, str], RecordSender]" = {}
_lock = threading.Lock()
_settled = False


def reader_of(reach: Reach, group: str = TOOLS_GROUP) -> RecordReader:
    """Return this process's reader of a cluster; made once, closed when the process ends."""
    key = (os.getpid(), reach, group)
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


def sender_for(
    reach: Reach,
    group: str,
    *,
    purpose: str = "",
    compress: bool = True,
) -> "RecordSender":
    """Return this process's sender, made on first use; `purpose` tells senders apart."""
    from pocketmq.blocking.record_sender import RecordSender  # tasks that only read do without

    key = (os.getpid(), reach, group, purpose)
    sender = _senders.get(key)
    if sender is None:
        options = msgspec.structs.replace(reach.client(), start_wait=reach.retry_timeout)
        sender = RecordSender(
            group=group,
            options=options,
            compress_from=COMPRESS_FROM if compress else NEVER,
            send_timeout=max(SEND_TIMEOUT, reach.request_timeout),
        )
        sender.start()
        settle()
        _senders[key] = sender
    return sender


def forget_senders() -> None:
    """Close this process's senders."""
    for key in [key for key in _senders if key[0] == os.getpid()]:
        _senders.pop(key).close()


def may_pass(error: MQError) -> bool:
    """Return whether waiting may cure an error.

    A missing permission is retryable, as in Java, because another broker may grant it. Clients
    have tried the others when they raise it, so a task would wait in vain.
    """
    return error.retryable and getattr(error, "code", None) != ResponseCode.NO_PERMISSION


def patiently(call: Callable[[], T], patience: float) -> T:
    """Call, and retry for `patience` seconds as long as the error may pass."""
    deadline = time.monotonic() + patience
    pause = PAUSE
    while True:
        try:
            return call()
        except MQError as error:
            if not may_pass(error) or time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)


def settle() -> None:
    """Hide what is loaded by now from the garbage collector, once per process.

    Spark's workers run a full collection after every task, which visits all modules: 37 ms wasted.
    """
    global _settled  # noqa: PLW0603 - one process, one heap
    if not _settled:
        _settled = True
        gc.collect()
        gc.freeze()
