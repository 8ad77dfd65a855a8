"""Running a consumer until the process is told to stop: SIGINT (Ctrl-C) or SIGTERM."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def until_told(start: Callable[[], Coroutine[Any, Any, object]], told: asyncio.Event) -> None:
    """Start something, and wait until a signal comes or `told` is set; a start is given up then.

    Raises what the start does.
    """
    with _signals_set(told):
        starting = asyncio.ensure_future(start())
        telling = asyncio.ensure_future(told.wait())
        try:
            await asyncio.wait({starting, telling}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                await starting
                await telling
        finally:
            for task in (starting, telling):
                task.cancel()
            await asyncio.wait({starting, telling})


@contextmanager
def _signals_set(told: asyncio.Event) -> Iterator[None]:
    """Have the first signal set an event; a second one does what it always does.

    Only the main thread's loop can see signals, which is Python's rule.
    """
    loop = asyncio.get_running_loop()

    def let_go() -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    def came() -> None:
        let_go()
        told.set()

    with suppress(ValueError, RuntimeError, NotImplementedError):
        for number in _SIGNALS:
            loop.add_signal_handler(number, came)
    try:
        yield
    finally:
        let_go()
