"""The one loop thread that all blocking clients of a process share, and the process's end.

Started when first needed. A fork starts over: threads of the parent do not exist there, and clients
made there get a fresh loop. Clients that are still open when the interpreter exits are closed
gracefully, within a time limit, so that submitted messages are sent.
"""

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pocketmq.blocking.loop_thread import LoopThread
from pocketmq.errors import MQError

logger = logging.getLogger("pocketmq.client")

CLOSE_WAIT = 5.0
"""Seconds that clients still open at the exit of the interpreter may take to close."""


CloseWork = Callable[[], Coroutine[Any, Any, None]]
"""Returns the coroutine that closes a client."""


class _Process:
    """The state of one process; a fork has another."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.thread: LoopThread | None = None
        self.callbacks: ThreadPoolExecutor | None = None
        self.open: dict[object, CloseWork] = {}


_process = _Process()
_parents: list[_Process] = []
"""Kept, not used: dropping the parent's loop in a fork would close files that the parent uses."""


def loop_thread() -> LoopThread:
    """Return the process's loop thread."""
    process = _process
    with process.lock:
        if process.thread is None:
            process.thread = LoopThread("pocketmq-clients")
            atexit.register(_end)
        return process.thread


def callback_threads() -> ThreadPoolExecutor:
    """Return the threads for an application's callbacks, so that they may block."""
    process = _process
    with process.lock:
        if process.callbacks is None:
            process.callbacks = ThreadPoolExecutor(8, thread_name_prefix="pocketmq-callbacks")
        return process.callbacks


def opened(client: object, close: CloseWork) -> None:
    """Register a running client, to close it at exit."""
    _process.open[client] = close


def closed(client: object) -> None:
    """Unregister a client."""
    _process.open.pop(client, None)


def _end() -> None:
    """Close all open clients, and the loop: the interpreter is about to exit."""
    process = _process
    thread, process.thread = process.thread, None
    if thread is None:
        return
    left = list(process.open.items())
    try:
        if left:
            thread.call(_close_all(left))
        thread.close(patience=0.0)
        if process.callbacks is not None:
            process.callbacks.shutdown(wait=False)
    except MQError as error:
        logger.warning("cannot close clients at exit: %s", error)


async def _close_all(clients: list[tuple[object, CloseWork]]) -> None:
    tasks = [asyncio.create_task(close(), name=repr(client)) for client, close in clients]
    done, late = await asyncio.wait(tasks, timeout=CLOSE_WAIT)
    for task in late:
        task.cancel()
        logger.warning(
            "%s was not closed before exit, and closing took longer than %g s: unfinished work is "
            "lost; close it, or use `with`", task.get_name(), CLOSE_WAIT
        )  # fmt: skip
    for task in done:
        error = task.exception()
        if error is not None:
            logger.warning(
                "%s was not closed before exit; closing it failed: %s", task.get_name(), error
            )


def _forked() -> None:
    global _process  # noqa: PLW0603 - a process has one
    _parents.append(_process)
    _process = _Process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
