"""Pull consumers with STICKY: what was polled is done, stored and told before a queue moves."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from pocketmq.balance.handover.events import Stopping
from pocketmq.client.pull import PullConsumer
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue
from pocketmq.model.group_balance import BalanceMode
from tests.client.group.groups import cluster
from tests.client.group.handover.sticky import STICKY, stream
from tests.client.pull.readers import reader
from tests.loops import until


def sticky_reader(address: str, name: str, **settings: Any) -> PullConsumer:
    return reader(address, name, **{**STICKY, **settings}).subscribe("orders")


class Reader:
    """Polls all the time, and keeps what it gets."""

    def __init__(self, consumer: PullConsumer) -> None:
        self.consumer = consumer
        self.got: list[bytes] = []
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self.consumer.start()
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while True:
            for message in await self.consumer.poll(1.0):
                self.got.append(message.body)
                await asyncio.sleep(0)

    async def iterate(self) -> None:
        await self.consumer.start()
        self._task = asyncio.create_task(self._iterate())

    async def _iterate(self) -> None:
        async for message in self.consumer:
            self.got.append(message.body)
            await asyncio.sleep(0)

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})
        await self.consumer.close()

    @property
    def queues(self) -> tuple[MessageQueue, ...]:
        return self.consumer.assignment().get("orders", ())


@pytest.mark.parametrize("iterates", [False, True])
async def test_nothing_is_polled_twice_when_readers_come_and_go(iterates: bool) -> None:
    async with cluster(1) as running:
        a, b = (Reader(sticky_reader(running.address, name)) for name in "ab")
        await (a.iterate() if iterates else a.start())
        await until(lambda: len(a.queues) == 4, "all queues")
        async with stream(running) as bodies:
            await until(lambda: len(a.got) > 50, "messages")
            await (b.iterate() if iterates else b.start())
            await until(lambda: len(b.queues) == 2 == len(a.queues), "both to share")
            await until(lambda: len(b.got) > 50, "messages of the second reader")
            await b.stop()
            await until(lambda: len(a.queues) == 4, "all queues again")
            count = len(bodies)
            await until(lambda: len(bodies) > count + 20, "more messages")
        await until(lambda: set(a.got) | set(b.got) >= set(bodies), "all messages")
        await a.stop()
        seen = Counter(a.got + b.got)
        assert {body: n for body, n in seen.items() if n > 1} == {}


async def test_the_listener_returns_before_the_next_owner_starts() -> None:
    async with cluster(1) as running:
        first = sticky_reader(running.address, "a")
        a = Reader(first)
        told: list[MessageQueue] = []
        may_end = asyncio.Event()

        @first.on_revoked
        async def revoked(queues: Sequence[MessageQueue]) -> None:
            told.extend(queues)
            await may_end.wait()

        await a.start()
        await until(lambda: len(a.queues) == 4, "all queues")
        assert first.balance.mode is BalanceMode.STICKY
        assert first.balance.client_id == "10.0.0.1@a@STREAM@pm1"
        b = Reader(sticky_reader(running.address, "b"))
        await b.start()
        await until(lambda: bool(told), "the listener to be called")
        assert b.queues == ()
        may_end.set()
        await until(lambda: len(b.queues) == 2, "the next owner to start")
        await until(lambda: set(told) == set(b.queues), "all given queues to be told")
        await b.stop()
        await a.stop()


async def test_what_was_polled_and_not_committed_by_hand_is_polled_by_the_next_owner() -> None:
    async with cluster(1, 1) as running:
        async with stream(running) as bodies:
            await until(lambda: len(bodies) > 20, "messages")
        async with sticky_reader(running.address, "a", auto_commit=False, pull_batch=4) as a:
            got = [message.body for message in await a.poll(10.0)]
            await a.commit()
            again = [message.body for message in await a.poll(10.0)]
            assert again
        async with sticky_reader(running.address, "b", auto_commit=False, pull_batch=4) as b:
            assert [message.body for message in await b.poll(10.0)] == again
        assert got == bodies[: len(got)]


async def test_queues_cannot_be_assigned_by_hand_and_shared_with_sticky() -> None:
    consumer = reader("127.0.0.1:9", "a", **STICKY)
    with pytest.raises(
        InvalidInput,
        match=r"assign\(\) cannot be combined with strategy='STICKY'.*leave the strategy out",
    ):
        consumer.assign([MessageQueue("orders", "broker-0", 0)])
    with pytest.raises(InvalidInput, match="pull consumers drain"):
        reader("127.0.0.1:9", "a", handover="overlap", **STICKY)


async def test_a_queue_moves_only_when_what_was_polled_last_is_done() -> None:
    async with cluster(1, 1) as running:
        async with stream(running) as bodies:
            await until(lambda: len(bodies) > 20, "messages")
        a = sticky_reader(running.address, "0", pull_batch=4)
        await a.start()
        polled = await a.poll(10.0)
        assert polled
        async with sticky_reader(running.address, "b", pull_batch=4) as b:
            await until(lambda: len(a.balance.members) == 2, "the second member")
            closing = asyncio.create_task(_give(a))
            assert not await b.poll(0.3)
            await a.poll(0.0)  # the batch is done
            await closing
            first = (await b.poll(10.0))[0]
            assert first.body == bodies[len(polled)]
        await a.close()


async def _give(consumer: PullConsumer) -> None:
    """Stop the only queue, as if another member had claimed it."""
    member = consumer._life.member
    assert member is not None
    assert member.sticky is not None
    member.sticky._post(Stopping(0.0))
    await member.sticky._left.wait()
