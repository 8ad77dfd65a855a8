"""Requests that a broker passes on to a client: one at a time for each broker.

A broker of Java waits for the client on one of its 16 admin threads, for 10 seconds. Requests to
members that are stopped would occupy them all, and the whole cluster would wait for its locks. A
call that its caller has given up still occupies its thread, so it is counted until it has ended.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from pocketmq.errors import RequestTimedOut, TransportError

MOST_OPEN = 8
"""Calls that a broker may still be waiting for: half of the threads that it has for them."""

T = TypeVar("T")


class RelayedCalls:
    """The calls to clients through all brokers. Belongs to one event loop."""

    def __init__(self) -> None:
        self._turns: dict[str, asyncio.Lock] = {}
        self._open: dict[str, dict[str, asyncio.Task[object]]] = {}

    async def call(
        self,
        address: str,
        client: str,
        name: str,
        ask: Callable[[], Awaitable[T]],
        patience: float | None = None,
    ) -> T:
        """Ask a client through a broker when it is its turn, and return the answer.

        A client that has not answered an earlier call is not asked again; its answer to that one is
        returned if it comes now. `patience` counts from its turn on. Raises what `ask` does,
        `RequestTimedOut` if patience ends first, and `TransportError` without asking while the
        broker waits for too many others.
        """
        async with self._turns.setdefault(address, asyncio.Lock()):
            still = self._open.setdefault(address, {})
            task = cast("asyncio.Task[T] | None", still.get(client))
            if task is None:
                if len(still) >= MOST_OPEN:
                    waits = f"the broker waits for {len(still)} members that do not respond"
                    raise TransportError(client, f"not asked: {waits}")
                task = asyncio.ensure_future(ask())
                still[client] = task
                task.add_done_callback(lambda done: _forget(still, client, done))
            await asyncio.wait({task}, timeout=patience)
            if not task.done():
                raise RequestTimedOut(client, name, patience or 0.0)
            return task.result()


def _forget(
    still: dict[str, asyncio.Task[object]], client: str, done: asyncio.Task[object]
) -> None:
    del still[client]
    if not done.cancelled():
        done.exception()  # its caller has gone, and it must not be logged as unseen
