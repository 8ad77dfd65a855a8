"""When a consumer stores its offsets: soon after the first handled messages, then at an interval.

Java waits for ten seconds after the start, whatever was handled: a consumer that ends without a
farewell before that has stored nothing, and all its messages come again.
"""

import asyncio
from collections.abc import Awaitable, Callable

from pocketmq.balance.consumer.offset_table import OffsetTable
from pocketmq.client.options import ClientOptions
from pocketmq.client.tasks import Tasks

_IDLE = 10
"""If nothing is handled, offsets are stored after so many times `persist_first_after`."""


def persist_by_and_by(
    tasks: Tasks,
    table: OffsetTable,
    options: ClientOptions,
    persist: Callable[[], Awaitable[object]],
) -> None:
    """Store what is noted in a table, again and again, until the tasks are stopped."""
    advanced = asyncio.Event()
    table.when_advanced = advanced.set

    async def begin() -> None:
        first_after = options.persist_first_after
        try:
            async with asyncio.timeout(_IDLE * first_after):
                await advanced.wait()
        except TimeoutError:
            first_after = 0.0
        tasks.every(options.persist_interval, persist, "offsets", first_after=first_after)

    tasks.spawn(begin(), "first offsets")
