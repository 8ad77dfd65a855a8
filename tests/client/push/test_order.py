"""Orderly consumers on a cluster: the order of each queue holds while members come and go."""

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

import pytest

from pocketmq.client.producer.producer import Producer
from pocketmq.model import Message
from pocketmq.protocol import ReceivedMessage
from tests.client.group.groups import Member, cluster
from tests.loops import until

KEYS = 12
EACH = 60


class Ledger:
    """Who handled what, in the order it happened."""

    def __init__(self) -> None:
        self.seen: dict[bytes, list[int]] = defaultdict(list)
        self.at_work: dict[tuple[str, int], int] = defaultdict(int)
        self.overlaps = 0

    def enter(self, message: ReceivedMessage) -> None:
        queue = message.broker_name, message.queue_id
        self.at_work[queue] += 1
        self.overlaps += self.at_work[queue] > 1

    def leave(self, message: ReceivedMessage) -> None:
        key, number = message.body.split(b":")
        self.seen[key].append(int(number))
        self.at_work[message.broker_name, message.queue_id] -= 1

    def complete(self) -> bool:
        return len(self.seen) == KEYS and all(
            set(numbers) == set(range(EACH)) for numbers in self.seen.values()
        )


def plain(ledger: Ledger) -> Any:
    def handler(message: ReceivedMessage) -> None:
        ledger.enter(message)
        ledger.leave(message)

    return handler


def coroutine(ledger: Ledger) -> Any:
    async def handler(message: ReceivedMessage) -> None:
        ledger.enter(message)
        await asyncio.sleep(0.001)
        ledger.leave(message)

    return handler


@pytest.mark.parametrize("kind", [plain, coroutine])
async def test_the_order_of_each_key_holds_while_members_come_and_go(kind: Any) -> None:
    ledger = Ledger()
    async with cluster(2, 4) as running, AsyncExitStack() as stack:

        async def join(name: str) -> Member:
            one = Member(running.address, name, orderly=True, stop_wait=2.0)
            one.consumer.subscribe("orders", "*", kind(ledger))
            return await _entered(stack, one)

        members = [await join("a")]
        producer = await stack.enter_async_context(Producer(running.address, group="shop"))

        async def send(key: int) -> None:
            for number in range(EACH):
                message = Message("orders", b"%d:%d" % (key, number))
                await producer.send(message, ordering_key=str(key))

        sending = [asyncio.create_task(send(key)) for key in range(KEYS)]
        members.append(await join("b"))
        await until(members[1].queues, "the second to have queues")
        members.append(await join("c"))
        await until(members[2].queues, "the third to have queues")
        await members[0].consumer.close()
        await asyncio.gather(*sending)
        await until(ledger.complete, "all messages", 30)
    assert ledger.overlaps == 0
    for numbers in ledger.seen.values():
        # What was handled before a move may come again, but never out of order.
        behind = [now for before, now in pairwise(numbers) if now > before + 1]
        assert behind == []


async def _entered(stack: AsyncExitStack, one: Member) -> Member:
    await stack.enter_async_context(one.consumer)
    return one
