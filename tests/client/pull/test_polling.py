"""Messages are polled once, in order within a queue, and none is lost by whoever gives up."""

import asyncio
from typing import Any

import pytest

from pocketmq.balance.consumer.limits import LitePullLimits, QueueLimits
from pocketmq.client.pull import PullConsumer
from pocketmq.errors import ClientClosed
from pocketmq.protocol import ReceivedMessage
from tests.client.group.groups import cluster, send
from tests.client.pull.readers import bodies, read, reader
from tests.loops import until


async def test_every_message_is_polled_once_and_in_the_order_of_its_queue() -> None:
    async with cluster(2) as running:
        sent = await send(running.address, 100)
        async with reader(running.address).subscribe("orders") as consumer:
            got = await read(consumer, 100)
            assert bodies(got) == sorted(sent)
            places = [(m.broker_name, m.queue_id, m.queue_offset) for m in got]
            by_queue: dict[tuple[str, int], list[int]] = {}
            for broker, queue, offset in places:
                by_queue.setdefault((broker, queue), []).append(offset)
            assert len(by_queue) == 8
            assert all(offsets == list(range(len(offsets))) for offsets in by_queue.values())
            assert await consumer.poll(0) == []


async def test_one_poll_gives_what_one_pull_brought() -> None:
    async with cluster(1, 1) as running:
        await send(running.address, 25)
        async with reader(running.address, pull_batch=10).subscribe("orders") as consumer:
            sizes = [len(await consumer.poll(5)) for _ in range(3)]
            assert sizes == [10, 10, 5]


async def test_a_poll_that_finds_nothing_ends_at_its_deadline() -> None:
    async with cluster() as running, reader(running.address).subscribe("orders") as consumer:
        loop = asyncio.get_running_loop()
        due = loop.time() + 0.05  # as the poll computes it: a difference of times would be rounded
        assert await consumer.poll(0.05) == []
        assert due <= loop.time() < due + 10, "pulls are held for 15 s"


async def test_a_poll_waits_for_a_message_to_come() -> None:
    async with cluster() as running, reader(running.address).subscribe("orders") as consumer:
        await until(lambda: len(consumer.assignment()) == 1, "queues")
        poll = asyncio.ensure_future(consumer.poll(10))
        await asyncio.sleep(0)
        await send(running.address, 1)
        assert bodies(await poll) == [b"0"]


async def test_a_cancelled_poll_loses_nothing() -> None:
    """Whether it is cancelled before, while or after it was woken."""
    async with cluster(1, 2) as running:
        consumer = reader(running.address, pull_batch=1).subscribe("orders")
        async with consumer:
            await until(lambda: len(consumer.assignment()) == 1, "queues")
            got: list[ReceivedMessage] = []
            sending = asyncio.ensure_future(send(running.address, 60))
            turns = 0
            async with asyncio.timeout(10):
                while len(got) < 60:
                    poll = asyncio.ensure_future(consumer.poll(1))
                    for _ in range(turns % 4):
                        await asyncio.sleep(0)
                    turns += 1
                    if turns % 3 and poll.cancel():
                        await asyncio.wait({poll})
                    else:
                        await asyncio.wait({poll})
                    if not poll.cancelled():
                        got += poll.result()
            assert bodies(got) == sorted(await sending)


async def test_many_polls_at_once_share_what_comes() -> None:
    async with cluster() as running:
        consumer = reader(running.address, pull_batch=1).subscribe("orders")
        async with consumer:
            polls = [asyncio.ensure_future(consumer.poll(10)) for _ in range(12)]
            sent = await send(running.address, 12)
            got = await asyncio.gather(*polls)
            assert bodies([message for some in got for message in some]) == sorted(sent)


async def test_a_message_is_iterated_over_once_it_comes_and_the_end_is_clean() -> None:
    async with cluster() as running, reader(running.address).subscribe("orders") as consumer:
        sent = await send(running.address, 20)
        got = []
        async for message in consumer:
            got.append(message)
            if len(got) == 20:
                await consumer.close()
        assert bodies(got) == sorted(sent)


async def test_closing_ends_an_iteration_and_a_poll_that_wait() -> None:
    async with cluster() as running:
        consumer = reader(running.address).subscribe("orders")
        await consumer.start()
        poll = asyncio.ensure_future(consumer.poll(60))
        iteration = asyncio.ensure_future(_all(consumer))
        await until(lambda: len(consumer.assignment()) == 1, "queues")
        await consumer.close()
        assert await poll == []
        assert await iteration == []


async def _all(consumer: PullConsumer) -> list[bytes]:
    return [message.body async for message in consumer]


async def test_iterating_starts_a_consumer() -> None:
    async with cluster() as running:
        await send(running.address, 1)
        consumer = reader(running.address).subscribe("orders")
        try:
            async for message in consumer:
                assert message.body == b"0"
                break
        finally:
            await consumer.close()


async def test_a_closed_consumer_says_so() -> None:
    async with cluster() as running:
        consumer = reader(running.address).subscribe("orders")
        with pytest.raises(ClientClosed):
            await consumer.poll()
        async with consumer:
            pass
        with pytest.raises(ClientClosed):
            await consumer.poll()
        with pytest.raises(ClientClosed):
            await consumer.start()
        await consumer.close()


async def test_the_cache_ends_where_the_limits_are() -> None:
    """More is pulled only once something was polled."""
    limits = LitePullLimits(queue=QueueLimits(count=30, size_mib=100, span=2000))
    async with cluster(1, 1) as running:
        sent = await send(running.address, 100)
        settings: dict[str, Any] = {"limits": limits, "pull_batch": 10}
        async with reader(running.address, **settings).subscribe("orders") as consumer:
            parts = consumer._life.running().parts
            await until(lambda: len(parts.cache) == 4, "a full cache")
            (assigned,) = parts.assigned()
            await until(lambda: assigned.woken is not None, "the pull task to wait")
            assert assigned.process.count == 40  # a pull that began below the limit
            assert bodies(await read(consumer, 100)) == sorted(sent)


async def test_all_queues_together_have_a_limit() -> None:
    async with cluster(1, 4) as running:
        sent = await send(running.address, 80)
        limits = LitePullLimits(total=20)
        settings: dict[str, Any] = {"limits": limits, "pull_batch": 5}
        async with reader(running.address, **settings).subscribe("orders") as consumer:
            parts = consumer._life.running().parts
            await until(lambda: len(list(parts.assigned())) == 4, "queues")
            await until(lambda: all(each.woken is not None for each in parts.assigned()), "a pause")
            assert 5 <= len(parts.cache) <= 8  # each task looks before its own pull
            assert bodies(await read(consumer, 80)) == sorted(sent)


async def test_paused_queues_are_not_pulled_until_they_are_resumed() -> None:
    async with cluster(1, 2) as running:
        consumer = reader(running.address).subscribe("orders")
        consumer.pause("orders")
        async with consumer:
            await until(lambda: len(consumer.assignment()) == 1, "queues")
            await send(running.address, 10)
            first, second = consumer.assignment()["orders"]
            assert await consumer.poll(0.05) == []
            consumer.resume()
            consumer.pause([second])
            assert {m.queue_id for m in await read(consumer, 5)} == {first.queue_id}
            assert await consumer.poll(0.05) == []
            consumer.resume([second])
            assert {m.queue_id for m in await read(consumer, 5)} == {second.queue_id}


async def test_a_broker_that_comes_back_is_read_on() -> None:
    async with cluster(2) as running:
        settings: dict[str, Any] = {"route_interval": 0.1, "heartbeat_interval": 0.2}
        async with reader(running.address, **settings).subscribe("orders") as consumer:
            await send(running.address, 16)
            await read(consumer, 16)
            await running.restart("broker-1")
            sent = await send(running.address, 16)
            assert set(bodies(await read(consumer, 16))) == set(sent)
