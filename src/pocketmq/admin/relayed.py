"""Requests that a broker passes on to a client: one at a time for each broker.

A broker of Java waits for the client on one of its 16 admin threads, for 10 seconds. Requests to
members that are stopped would occupy them all, and the whole cluster would wait for its locks. A
call that its caller has given up still occupies its thread, so it is counted until it has ended.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

import msgspec

from pocketmq.errors import RequestTimedOut, TransportError

MOST_OPEN = 8
"""Calls that a broker may still be waiting for: half of the threads that it has for them."""

T = TypeVar("T")


class RelayedCall(msgspec.Struct, frozen=True):
    """A request to a client: its name, and what it is about, such as the group."""

    client: str
    name: str
    about: tuple[str | bool, ...] = ()


class RelayedCalls:
    """The calls to clients through all brokers. Belongs to one event loop."""

    def __init__(self) -> None:
        self._turns: dict[str, asyncio.Lock] = {}
        self._open: dict[str, dict[RelayedCall, asyncio.Task[object]]] = {}

    async def call(
        self,
        address: str,
        wanted: RelayedCall,
        ask: Callable[[], Awaitable[T]],
        patience: float | None = None,
    ) -> T:
        """Ask a client through a broker when it is its turn, and return the answer.

        A client that has not answered the same call yet is not asked again; its answer to that one
        is returned if it comes now. `patience` counts from its turn on. Raises what `ask` does,
        `RequestTimedOut` if patience ends first, and `TransportError` without asking while the
        broker waits for too many others.
        """
        async with self._turns.setdefault(address, asyncio.Lock()):
            still = self._open.setdefault(address, {})
            task = cast("asyncio.Task[T] | None", still.get(wanted))
            if task is None:
                if len(still) >= MOST_OPEN:
                    waits = f"the broker waits for {len(still)} members that do not respond"
                    raise TransportError(wanted.client, f"not asked: {waits}")
                task = asyncio.ensure_future(ask())
                still[wanted] = task
                task.add_done_callback(lambda done: _forget(still, wanted, done))
            await asyncio.wait({task}, timeout=patience)
            if not task.done():
                raise RequestTimedOut(wanted.client, wanted.name, patience or 0.0)
            return task.result()


def _forget(
    still: dict[RelayedCall, asyncio.Task[object]], call: RelayedCall, done: asyncio.Task[object]
) -> None:
    del still[call]
    if not done.cancelled():
        done.exception()  # its caller has gone, and it must not be logged as unseen
