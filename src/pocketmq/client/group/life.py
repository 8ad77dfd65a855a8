"""The life of a consumer as its application sees it: start, close, and run until a signal.

Every kind of consumer has one `ConsumerLife`. It joins the session, makes the member and lets it
take its steps (`RunningMember`); `Lifetime` makes sure that each happens once. Belongs to one loop.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from pocketmq.client.group.member import RunningMember
from pocketmq.client.lifetime import Lifetime
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, shown
from pocketmq.errors import ClientClosed

M = TypeVar("M", bound=RunningMember)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ConsumerLife(Generic[M]):
    """Start and stop of one consumer."""

    def __init__(
        self,
        group: str,
        join: Callable[[], Awaitable[Lease]],
        make: Callable[[Session], M],
    ) -> None:
        self._group = group
        self._name = f"consumer of group {group}"
        self._join = join
        self._make = make
        self._lifetime = Lifetime(self._name)
        self._lease: Lease | None = None
        self.member: M | None = None
        """Set when a start begins; stays after the end, for what can still be asked then."""
        self.current: M | None = None
        """The same, but None from the beginning of the end on."""

    @property
    def ended(self) -> bool:
        """Whether the end has begun."""
        return self._lifetime.ended

    def running(self) -> M:
        """Return the member; raise `ClientClosed` if there is none."""
        member = self.current
        if member is None:
            raise ClientClosed(self._name)
        return member

    async def start(self) -> None:
        """Start, unless that has been done; if it raises, nothing is left running."""
        await self._lifetime.start(self._start)

    async def _start(self) -> None:
        self._lease = await self._join()
        try:
            self.member = self.current = self._make(self._lease.session)
            await self.member.start()
        except BaseException:  # also cancelled by a close: nothing may be left at the brokers
            await self._stop(lambda member: member.stop())
            self._lease = self.member = self.current = None
            raise

    async def close(self, stop: Callable[[M], Awaitable[None]]) -> None:
        """Stop the member and leave the session; harmless twice, continues if cancelled.

        Raises `ClientForked` in a fork of the process it was started in.
        """
        if self._lease is not None:
            self._lease.session.check_process()
        self.current = None
        await self._lifetime.end(lambda: self._stop(stop))

    async def _stop(self, stop: Callable[[M], Awaitable[None]]) -> None:
        try:
            if self.member is not None:
                await stop(self.member)
        finally:
            if self._lease is not None:
                await self._lease.release()

    def describe(self, consumer: object, *, closed: bool) -> str:
        """Return the `repr` of a consumer."""
        state = "running" if self.current is not None else "closed" if closed else "not started"
        return shown(consumer, self._group, self._lease, state)


async def run_until_signal(
    start: Callable[[], Coroutine[Any, Any, object]], stopped: asyncio.Event
) -> None:
    """Start something, and wait for SIGINT (Ctrl-C), SIGTERM or `stopped`.

    A start in flight is cancelled then. Raises what the start does.
    """
    with _signals_set(stopped):
        starting = asyncio.ensure_future(start())
        stopping = asyncio.ensure_future(stopped.wait())
        try:
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                await starting
                await stopping
        finally:
            for task in (starting, stopping):
                task.cancel()
            await asyncio.wait({starting, stopping})


@contextmanager
def _signals_set(stopped: asyncio.Event) -> Iterator[None]:
    """Let the first signal set an event; a second one has its usual effect.

    Only the main thread's loop can handle signals, which is Python's rule.
    """
    loop = asyncio.get_running_loop()

    def remove_handlers() -> None:
        with suppress(NotImplementedError):  # Windows: Ctrl-C raises KeyboardInterrupt
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def received() -> None:
        remove_handlers()
        stopped.set()

    with suppress(ValueError, RuntimeError, NotImplementedError):
        for number in _SIGNALS:
            loop.add_signal_handler(number, received)
    try:
        yield
    finally:
        remove_handlers()
