"""The one loop thread that all blocking clients of a process share, and the process's end.

Begun when first needed. A fork begins anew: it has no thread of its parent's, and clients made
there get a fresh one. When the interpreter ends with clients still open they are closed in good
order, within a limit, so that what was promised is sent.
"""

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.errors import MQError

logger = logging.getLogger("pocketmq.client")

LAST_WORDS = 5.0
"""Seconds that clients nobody closed may take when the interpreter ends."""


class Closable(Protocol):
    """A client as its process's end sees it."""

    def last_words(self) -> Coroutine[Any, Any, None]:
        """Give the work of closing."""

    def __hash__(self) -> int: ...


class _Process:
    """What this process has; a fork has another."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.thread: LoopThread | None = None
        self.callbacks: ThreadPoolExecutor | None = None
        self.open: set[Closable] = set()


_process = _Process()
_parents: list[_Process] = []
"""Kept, not used: to drop a loop of the parent's would close files it still uses."""


def loop_thread() -> LoopThread:
    """Give the process's loop thread."""
    process = _process
    with process.lock:
        if process.thread is None:
            process.thread = LoopThread("pocketmq-clients")
            atexit.register(_end)
        return process.thread


def callback_threads() -> ThreadPoolExecutor:
    """Give the threads in which an application's callbacks run, so that they may block."""
    process = _process
    with process.lock:
        if process.callbacks is None:
            process.callbacks = ThreadPoolExecutor(8, thread_name_prefix="pocketmq-callbacks")
        return process.callbacks


def opened(client: Closable) -> None:
    """Remember a client that runs, to close it at the process's end."""
    _process.open.add(client)


def closed(client: Closable) -> None:
    """Forget a client."""
    _process.open.discard(client)


def _end() -> None:
    """Close what is open, and the loop: the interpreter is about to end."""
    process = _process
    thread, process.thread = process.thread, None
    if thread is None:
        return
    left = list(process.open)
    try:
        if left:
            thread.call(_close_all(left))
        thread.close(patience=0.0)
        if process.callbacks is not None:
            process.callbacks.shutdown(wait=False)
    except MQError as error:
        logger.warning("clients could not be closed: %s", error)


async def _close_all(clients: list[Closable]) -> None:
    tasks = [asyncio.create_task(client.last_words(), name=repr(client)) for client in clients]
    done, late = await asyncio.wait(tasks, timeout=LAST_WORDS)
    for task in late:
        task.cancel()
        logger.warning(
            "%s was not closed before the program's end, and %g s were not enough for it: what it "
            "still had to do is lost", task.get_name(), LAST_WORDS
        )  # fmt: skip
    for task in done:
        error = task.exception()
        if error is not None:
            logger.warning("%s was not closed before the program's end: %s", task.get_name(), error)


def _forked() -> None:
    global _process  # noqa: PLW0603 - a process has one
    _parents.append(_process)
    _process = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
