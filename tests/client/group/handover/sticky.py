"""STICKY groups on an embedded cluster, and what their members handled."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from pocketmq.client.producer.producer import Producer
from pocketmq.embedded.aio import Cluster
from pocketmq.model import Message, MessageQueue
from tests.client.group.groups import Member
from tests.loops import until

STICKY: dict[str, Any] = {"strategy": "STICKY", "settle": 0.02}


@asynccontextmanager
async def sticky(address: str, name: str, **settings: Any) -> AsyncIterator[Member]:
    """A running STICKY member that consumes `orders`."""
    handler, batch = settings.pop("handler", None), settings.pop("batch", False)
    one = SlowMember(address, name, **{**STICKY, **settings})
    one.consumer.subscribe("orders", "*", handler or one.handle, batch=batch)
    async with one.consumer:
        yield one


class SlowMember(Member):
    """A member whose handlers take a moment, so that some are at work whenever a queue moves."""

    async def handle(self, message: Any) -> None:
        self.got.append(message)
        await asyncio.sleep(0.01)


@asynccontextmanager
async def stream(cluster: Cluster, every: float = 0.002) -> AsyncIterator[list[bytes]]:
    """Messages sent one after another as long as this lasts; gives their bodies."""
    bodies: list[bytes] = []

    async def send() -> None:
        async with Producer(cluster.address, group="shop") as producer:
            while True:
                body = b"%d" % len(bodies)
                await producer.send(Message("orders", body))
                bodies.append(body)
                await asyncio.sleep(every)

    task = asyncio.create_task(send())
    try:
        yield bodies
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def all_seen(bodies: Sequence[bytes], *members: Member) -> Counter[bytes]:
    """Wait until all messages were handled; count how often each was."""

    def seen() -> set[bytes]:
        return {body for one in members for body in one.bodies}

    await until(lambda: set(bodies) <= seen(), "all messages to be handled")
    return Counter(body for one in members for body in one.bodies)


async def even(*members: Member, queues: int) -> None:
    """Wait until the members have all queues, none of them more than one above another."""

    def right() -> bool:
        shares = [set(one.queues()) for one in members]
        counts = [len(share) for share in shares]
        whole: set[MessageQueue] = set().union(*shares)
        return sum(counts) == len(whole) == queues and max(counts) - min(counts) <= 1

    await until(right, "an even assignment")
