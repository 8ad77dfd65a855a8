"""Calls of an application's own functions from a client's event loop.

Coroutine functions run on the loop. Plain functions run in threads, because they may block: in a
bounded pool, or, if a call may never return, in a daemon thread of its own. A function that wants
the program to end (SystemExit, KeyboardInterrupt) cannot say so from a thread; `interrupt_main`
passes that on to the main thread.
"""

import _thread
import asyncio
import contextvars
import inspect
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import FunctionType
from typing import Any

from pocketmq.errors import ClientClosed

AGAIN_AFTER = 5.0
"""Seconds in which the main thread is interrupted once. If many calls exit at the same time, the
second interrupt would abort the graceful shutdown that the first has begun."""

_asked = float("-inf")
_asking = threading.Lock()


class LocalCalls:
    """Calls functions of an application; at most `threads` plain ones at a time.

    The threads start when they are first needed, so that applications that have coroutine functions
    only have none. Belongs to one event loop.
    """

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False

    async def call(self, function: Callable[..., Any], *args: object) -> Any:
        """Return a function's result, awaited if it is awaitable; raises what it raises.

        If the caller is cancelled, a plain function keeps running: a thread cannot be stopped.
        Raises `ClientClosed` after `close`.
        """
        if self._closed:
            raise ClientClosed(self._name)
        if is_coroutine_function(function):
            return await function(*args)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        outcome = await loop.run_in_executor(self._pool, context.run, _guarded, function, args)
        return await outcome if inspect.isawaitable(outcome) else outcome

    def close(self) -> None:
        """Start no more calls; running ones finish by themselves."""
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def _guarded(function: Callable[..., Any], args: tuple[object, ...]) -> Any:
    """Call a function in a thread; an error that a future cannot carry becomes a plain one."""
    try:
        return function(*args)
    except (StopIteration, SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"{type(error).__name__} was raised: {error}") from error


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Return whether calling it returns a coroutine."""
    if type(function) is FunctionType and not function.__dict__:  # as nearly all are
        return bool(function.__code__.co_flags & inspect.CO_COROUTINE)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - of an object that is called
    )


class RaisedInThread(Exception):
    """Stands for an error that a future refuses to carry: StopIteration."""


async def call_in_own_thread(name: str, function: Callable[..., Any], *args: object) -> Any:
    """Call a plain function in a daemon thread of its own and return its result.

    For calls that are rare and may never return. They would fill up a pool; asyncio's own pool
    also resolves host names, and any pool keeps the interpreter from exiting. Raises what the
    function raises, also what is not an `Exception`. If the caller is cancelled, the function keeps
    running.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        result, failure = None, None
        try:
            result = context.run(function, *args)
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            failure = error
        with suppress(RuntimeError):  # the loop has been closed meanwhile
            loop.call_soon_threadsafe(hand_over, (result, failure))

    def hand_over(came: tuple[Any, BaseException | None]) -> None:
        if not outcome.done():
            outcome.set_result(came)

    threading.Thread(target=run, name=name, daemon=True).start()
    result, failure = await outcome
    if isinstance(failure, StopIteration):
        raise RaisedInThread(repr(failure)) from failure
    if failure is not None:
        raise failure
    return result


def interrupt_main() -> None:
    """Raise SIGINT on the main thread, also if it waits; not if the program ignores it."""
    global _asked  # noqa: PLW0603 - a process has one main thread
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, signal.SIG_IGN, None):
        return
    with _asking:
        now = time.monotonic()
        if now < _asked + AGAIN_AFTER:
            return
        _asked = now
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        # Unlike `interrupt_main` below it also wakes a main thread that waits for a lock.
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()
