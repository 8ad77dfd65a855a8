"""One call of an application's plain function, in a thread of its own.

For calls that are rare and may never end: a pool would fill with them, asyncio's own pool looks up
host names, and both keep the interpreter from ending. The thread is a daemon.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class RaisedInThread(Exception):
    """What may not cross over to a loop as it is: StopIteration, which a future refuses."""


async def call_in_own_thread(name: str, function: Callable[..., Any], *args: object) -> Any:
    """Give what a function gives; raises what it raises, also what is no `Exception`.

    Cancelled, it leaves the function at work: a thread cannot be stopped.
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
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, (result, failure))

    def tell(came: tuple[Any, BaseException | None]) -> None:
        if not outcome.done():
            outcome.set_result(came)

    threading.Thread(target=run, name=name, daemon=True).start()
    result, failure = await outcome
    if isinstance(failure, StopIteration):
        raise RaisedInThread(repr(failure)) from failure
    if failure is not None:
        raise failure
    return result
