"""The life cycle of a client: it starts once, closes once, and does not survive a fork.

Owns what callers see when several start at the same time, when `close` comes in the middle of a
start, when a caller is cancelled, and on another event loop than the client's. What starting and
closing do is up to the clients.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

from pocketmq.errors import ClientClosed, WrongLoop

Work = Callable[[], Coroutine[Any, Any, None]]

_forks = 0


def fork_count() -> int:
    """Return the number of forks between the first process and this one: its generation.

    A client compares it with the generation it was made in. `os.getpid` at each call would cost
    more than the rest of the check.
    """
    return _forks


def _forked() -> None:
    global _forks  # noqa: PLW0603 - a process has one generation
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Lifetime:
    """The start and the end of one client. Belongs to one event loop."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._turn = asyncio.Lock()  # one start at a time; the others find it done
        self._generation = 0
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop of the last start."""
        self._starting: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self.started = False

    @property
    def ended(self) -> bool:
        """Whether closing has begun."""
        return self._ending is not None

    async def start(self, work: Work) -> None:
        """Run `work` unless that has been done; concurrent callers wait for it.

        Raises what `work` does, which must leave nothing behind then, so that a start can be tried
        again, and `ClientClosed` if the client is closed before or meanwhile; `WrongLoop` if it
        runs, or is being started, on another loop.
        """
        if self.started or self._starting is not None:
            self.check_loop()
        elif self.loop is not (loop := asyncio.get_running_loop()):
            # A start that failed may be tried again on a fresh loop, with a lock that is its own.
            self.loop, self._generation, self._turn = loop, fork_count(), asyncio.Lock()
        async with self._turn:
            if self.ended:
                raise ClientClosed(self._name)
            if self.started:
                return
            # A task of its own: `end` has to be able to cancel the start, not its caller.
            starting = asyncio.get_running_loop().create_task(work(), name=f"start {self._name}")
            self._starting = starting
            try:
                await asyncio.wait({starting})
            except asyncio.CancelledError:
                starting.cancel()
                await asyncio.wait({starting})
                starting.cancelled() or starting.exception()  # retrieved, so that it is not logged
                raise
            finally:
                self._starting = None
            if starting.cancelled():
                raise ClientClosed(self._name)
            starting.result()
            if self.ended:
                raise ClientClosed(self._name)
            self.started = True

    def check_loop(self) -> None:
        """Raise `WrongLoop` unless it is called on the client's loop; before the end only.

        A fork is on another loop, too; what is wrong there is that it is a fork (`ClientForked`).
        """
        if self.loop is None or self.ended or fork_count() != self._generation:
            return
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:  # a thread without any
            here = None
        if here is not self.loop:
            raise WrongLoop(self._name)

    async def end(self, work: Work) -> None:
        """Run `work` unless that has been done or nothing was started; cancels a running start.

        If the caller is cancelled, closing continues in the background.
        """
        if self._ending is None:
            if not self.started and self._starting is None:
                return
            self._ending = asyncio.get_running_loop().create_task(
                self._end(work), name=f"close {self._name}"
            )
        await asyncio.shield(self._ending)

    async def _end(self, work: Work) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        await work()
