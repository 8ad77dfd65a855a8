"""Stopping a server process: SIGTERM, Ctrl-C or a closed terminal; a second signal forces it."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

from pocketmq.embedded.own_process import STOP_SIGNALS, was_asked_to_stop
from pocketmq.host import raise_open_files_limit

T = TypeVar("T")

_ECHO = 0.5
"""Seconds in which a loop may report a signal that came before it took over."""


class StopRequests:
    """Turns signals into a request to stop; a second signal calls `force`, which must not return.

    Use within a running loop of the main thread: `with StopRequests(force) as stop: …`.
    """

    def __init__(self, force: Callable[[], None]) -> None:
        self._force = force
        self._asked = asyncio.Event()
        self._echo_until = 0.0

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        # While the loop takes over, both handlers see a signal: it would count as two and force.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            for each in STOP_SIGNALS:
                loop.add_signal_handler(each, self.ask)
            if was_asked_to_stop():
                self._asked.set()
                # uvloop hears of signals from the moment it runs, so perhaps of this one, too.
                self._echo_until = loop.time() + _ECHO
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        for each in STOP_SIGNALS:
            loop.remove_signal_handler(each)

    def watch(self, lifeline: int) -> None:
        """Ask to stop when this pipe ends: its other end is the parent's."""
        loop = asyncio.get_running_loop()

        def readable() -> None:
            if not os.read(lifeline, 4096):
                loop.remove_reader(lifeline)
                if not self._asked.is_set():  # a signal and the end of the pipe are one request
                    self.ask()

        loop.add_reader(lifeline, readable)

    def ask(self) -> None:
        """Ask to stop; asking again forces it."""
        if not self._asked.is_set():
            self._asked.set()
        elif asyncio.get_running_loop().time() < self._echo_until:
            self._echo_until = 0.0
        else:
            self._force()

    @property
    def asked(self) -> bool:
        """Whether a stop is requested."""
        return self._asked.is_set()

    async def wait(self) -> None:
        """Wait until a stop is requested."""
        await self._asked.wait()

    async def unless_asked(self, work: Awaitable[T]) -> T | None:
        """Return the result of `work`, or cancel it and return None when asked to stop."""
        task = asyncio.ensure_future(work)
        asked = asyncio.ensure_future(self._asked.wait())
        try:
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            asked.cancel()
            task.cancel()
            await asyncio.wait({task, asked})


async def serve_until_asked(
    start: Callable[[], Awaitable[str]],
    stop: Callable[[], Awaitable[None]],
    *,
    announce: Callable[[str], None],
    force: Callable[[], None],
    lifeline: int | None = None,
) -> None:
    """Start a server, announce its address and stop it when asked, even while it starts.

    The process is the server's: it may open as many files as the system allows.
    """
    raise_open_files_limit()
    with StopRequests(force) as requests:
        if lifeline is not None:
            requests.watch(lifeline)
        try:
            address = None if requests.asked else await requests.unless_asked(start())
            if address is not None:
                announce(address)
                await requests.wait()
        finally:
            await stop()
