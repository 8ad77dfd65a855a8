"""A loop whose time passes only while there is nothing to do.

Sockets are real, but whoever waits for a timer waits no time at all: when no socket has anything to
say, the clock is put forward to the next timer. A day passes in seconds, and everything that
depends on time happens in the same order as on a slow machine with a quick network.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

EPOCH = 1_790_000_000.0
"""What the wall clock says when the loop's own time is 0."""
_LOOKS = 3
"""How often sockets are looked at before time passes: the kernel may deliver a little later."""


class _Idle(selectors.DefaultSelector):
    """Never waits for sockets; asks for the time to be put forward instead."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        for _ in range(_LOOKS):
            found = super().select(0)
            if found:
                return found
        if timeout is None:  # no timer either: only a socket or another thread can go on
            return super().select(1.0)
        if self.loop.threads_at_work:
            return super().select(0.001)
        self.loop.ahead += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        selector = _Idle()
        selector.loop = self
        self.ahead = 0.0
        self.threads_at_work = 0
        super().__init__(selector)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self.ahead

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Any, *args: Any
    ) -> "asyncio.Future[Any]":
        """Let no time pass while a thread is at work."""
        self.threads_at_work += 1
        future: asyncio.Future[Any] = asyncio.ensure_future(
            super().run_in_executor(executor, func, *args), loop=self
        )
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: object) -> None:
        self.threads_at_work -= 1


class VirtualClock:
    """The wall clock of everything on a virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._ticks = 0
        self.shift = 0.0
        """How far the wall clock was set forward or back."""

    def now(self) -> float:
        return EPOCH + self._loop.ahead + self.shift

    def now_ms(self) -> int:
        return int(self.now() * 1000)

    def tick(self) -> int:
        self._ticks += 1
        return int(self._loop.ahead * 1e9) + self._ticks


def run_virtually(story: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time; complaints to the loop are failures."""
    complaints: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: complaints.append(context))
        result = runner.run(story)
    assert complaints == []
    return result
