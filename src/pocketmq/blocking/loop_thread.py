"""An event loop in a thread of its own, for callers that block.

Owns the hand-over between the threads of callers and the loop. Independent of clients and
clusters. The thread is a daemon: it does not keep the program running.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

from pocketmq.errors import ClientClosed, ClientForked, WouldBlockLoop
from pocketmq.net.loops import loop_maker

T = TypeVar("T")

CLEAN_UP = 30.0
"""Seconds for cancelled work to clean up."""
_CHECK_INTERVAL = 5.0
"""Seconds between checks that the thread is alive, while a caller waits."""


class LoopThread:
    """Runs coroutines on its loop until it is closed. Any thread may call."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.loop = loop_maker("asyncio")()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._ident = self._thread.ident  # each call asks for it

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and return its result.

        If the caller is interrupted (KeyboardInterrupt, or whatever a signal handler raises), it
        cancels the coroutine and waits until that has cleaned up; interrupted once more, it returns
        at once. Raises `WouldBlockLoop` on the loop's own thread, `ClientForked` in a fork of the
        process and `ClientClosed` after `close`; the coroutine does not start then.
        """
        try:
            self.check()
        except BaseException:
            work.close()
            raise
        call = _Call(work)
        try:
            self.loop.call_soon_threadsafe(call.begin, self.loop)
            while not call.ended.acquire(timeout=_CHECK_INTERVAL):
                self.check()
        except BaseException as error:
            if not self.loop.is_closed():
                call.leave(self.loop)
            elif isinstance(error, RuntimeError):  # the loop was closed just now
                work.close()
                raise ClientClosed(self.name) from None
            raise
        try:
            return call.result()
        except asyncio.CancelledError:  # the loop was stopped
            raise ClientClosed(self.name) from None

    def check(self) -> None:
        """Raise what `call` would raise before it starts."""
        if os.getpid() != self._pid:
            raise ClientForked(self.name)
        if self.is_current():
            raise WouldBlockLoop(self.name)
        # Not `Thread.is_alive`: interrupted, it may take a thread that runs for one that has ended.
        if self.loop.is_closed():
            raise ClientClosed(self.name)

    def is_current(self) -> bool:
        """Whether the caller runs on the loop's thread, where waiting for it would never end."""
        return threading.get_ident() == self._ident

    def close(self, patience: float = CLEAN_UP) -> None:
        """Stop the loop and the thread; running tasks have `patience` seconds to finish first."""
        self.call(self._settle(patience))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CLEAN_UP)

    async def _settle(self, patience: float) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=patience)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            # A task that is cancelled before it has begun cannot clean up: asyncio would forget a
            # connection that it has just accepted.
            self.loop.run_until_complete(asyncio.sleep(0))
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            self.loop.close()


class _Call(Generic[T]):
    """One coroutine run for a caller; the lock `ended` is released when it has ended.

    A plain lock, not an event or a future: it is the cheapest thing that a thread can wait for with
    a timeout, and that a loop can release.
    """

    __slots__ = ("_task", "_work", "ended")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.ended = threading.Lock()
        self.ended.acquire()
        self._work = work
        self._task: asyncio.Task[T] | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the work; on the loop."""
        self._task = loop.create_task(self._work)
        self._task.add_done_callback(lambda _: self.ended.release())

    def leave(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the work, and wait until it has ended; for a caller that was interrupted."""
        loop.call_soon_threadsafe(self.cancel)
        # Perhaps the caller has acquired `ended` already: it is released once only.
        task = self._task
        if task is None or not task.done():
            self.ended.acquire(timeout=CLEAN_UP)

    def cancel(self) -> None:
        """Cancel the work, or do not start it; on the loop."""
        if self._task is not None:
            self._task.cancel()
        else:
            self._work.close()
            self.ended.release()

    def result(self) -> T:
        """Return the result and drop the task: it would form a cycle with an error's traceback."""
        task, self._task = self._task, None
        assert task is not None
        try:
            return task.result()
        finally:
            del task
