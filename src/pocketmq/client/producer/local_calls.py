"""Calls of an application's own functions: coroutines on the loop, others in a bounded pool.

The pool's threads are made when first needed, so that applications with coroutines alone have
none. Belongs to one event loop.
"""

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pocketmq.errors import ClientClosed


class LocalCalls:
    """Calls functions, so many plain ones at once as there are threads; more wait their turn."""

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False

    async def call(self, function: Callable[..., Any], *args: object) -> Any:
        """Give what a function gives, or what the awaitable it gives comes to; raises as it does.

        Cancelled, it leaves a plain function at work: a thread cannot be stopped. Raises
        `ClientClosed` after `close`.
        """
        if self._closed:
            raise ClientClosed(self._name)
        if _is_coroutine_function(function):
            return await function(*args)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=self._name)
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        outcome = await loop.run_in_executor(self._pool, context.run, _guarded, function, args)
        return await outcome if inspect.isawaitable(outcome) else outcome

    def close(self) -> None:
        """Begin no more calls; those at work end by themselves."""
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def _guarded(function: Callable[..., Any], args: tuple[object, ...]) -> Any:
    """Call a function in a thread; what may not cross over to a loop comes as a plain error."""
    try:
        return function(*args)
    except (StopIteration, SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"{type(error).__name__} was raised: {error}") from error


def _is_coroutine_function(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - of an object that is called
    )
