"""How far a group has come: committed by hand, by the timer of polls, at the end; and seeking."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pocketmq.balance.profile import V5
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageModel, MessageQueue
from tests.client.group.groups import cluster, send
from tests.client.pull.readers import bodies, read, reader
from tests.loops import leap, leaping, until

QUEUE = MessageQueue("orders", "broker-0", 0)


async def test_what_is_committed_by_hand_is_not_read_again() -> None:
    async with cluster(1, 1) as running:
        sent = await send(running.address, 30)
        settings: dict[str, Any] = {"auto_commit": False, "pull_batch": 10}
        async with reader(running.address, **settings).subscribe("orders") as consumer:
            await consumer.poll(5)
            await consumer.commit()
            await consumer.poll(5)
            assert await consumer.committed(QUEUE) == 10
        async with reader(running.address, **settings).subscribe("orders") as consumer:
            assert bodies(await read(consumer, 20)) == sorted(sent[10:])


async def test_any_offset_of_an_assigned_queue_can_be_committed() -> None:
    async with cluster(1, 2) as running:
        await send(running.address, 20)
        async with reader(running.address, auto_commit=False).subscribe("orders") as consumer:
            await read(consumer, 20)
            other = MessageQueue("orders", "broker-0", 1)
            await consumer.commit({QUEUE: 3})
            await consumer.commit([other])
            assert await consumer.committed(QUEUE) == 3
            assert await consumer.committed(other) == 10
            with pytest.raises(InvalidInput, match="not assigned"):
                await consumer.commit({MessageQueue("orders", "broker-0", 7): 3})
            with pytest.raises(InvalidInput, match="0 or more, not -1"):
                await consumer.commit({QUEUE: -1})


async def test_a_commit_is_at_the_broker_when_it_returns() -> None:
    async with cluster(1, 1) as running:
        await send(running.address, 10)
        async with (
            reader(running.address, auto_commit=False).subscribe("orders") as consumer,
            reader(running.address, "b", auto_commit=False).assign([QUEUE]) as other,
        ):
            await read(consumer, 10)
            await consumer.commit()
            # The other one has noted what it was told at its start, so a third is asked.
            async with reader(running.address, "c").assign([QUEUE]) as third:
                assert await third.committed(QUEUE) == 10
            assert other.assignment() == {"orders": (QUEUE,)}


@leaping
async def test_polls_commit_what_was_polled_before_them_every_five_seconds() -> None:
    async with cluster(1, 1) as running:
        await send(running.address, 30)
        async with reader(running.address, pull_batch=10).subscribe("orders") as consumer:
            table = consumer._life.running().parts.offsets.table
            await consumer.poll(5)
            await consumer.poll(5)
            assert table.read(QUEUE) == 0
            await leap(5)
            await consumer.poll(5)
            assert table.read(QUEUE) == 20


async def test_a_clean_end_commits_what_was_polled() -> None:
    async with cluster(1, 1) as running:
        await send(running.address, 10)
        async with reader(running.address).subscribe("orders") as consumer:
            await read(consumer, 10)
        async with reader(running.address).assign([QUEUE]) as consumer:
            assert await consumer.committed(QUEUE) == 10


async def test_what_was_polled_before_a_failure_comes_again() -> None:
    async with cluster(1, 1) as running:
        sent = await send(running.address, 10)
        with pytest.raises(ZeroDivisionError):
            await _fail_after_ten(running.address)
        async with reader(running.address).subscribe("orders") as consumer:
            assert bodies(await read(consumer, 10)) == sorted(sent)


async def test_a_queue_goes_to_another_member_with_all_but_what_was_polled_last() -> None:
    """Though no automatic commit was due: the last batch may not be done, all before it is."""
    async with cluster(1, 2) as running:
        sent = await send(running.address, 40)  # one queue after another
        # The new owner waits longer than the old one takes to notice: with BRISK it does not wait.
        waits = msgspec.structs.replace(V5, prompt_pause=V5.pull_start_delay)
        a = reader(running.address, "a", pull_batch=5).subscribe("orders")
        b = reader(running.address, "b", pull_batch=5, profile=waits).subscribe("orders")
        async with a:
            got = await read(a, 40)
            assert bodies(got) == sorted(sent)
            last = got[-5:]
            async with b:
                await until(lambda: len(b.assignment().get("orders", ())) == 1, "a share")
                (moved,) = b.assignment()["orders"]
                again = [m for m in last if m.queue_id == moved.queue_id]
                seen = await b.poll(1.0 if again else 0.1)
                assert bodies(seen) == bodies(again)


async def _fail_after_ten(address: str) -> None:
    async with reader(address).subscribe("orders") as consumer:
        await read(consumer, 10)
        raise ZeroDivisionError


async def test_an_iteration_that_is_left_counts_only_what_it_gave() -> None:
    async with cluster(1, 1) as running:
        sent = await send(running.address, 10)
        async with reader(running.address).subscribe("orders") as consumer:
            count = 0
            async for _ in consumer:
                count += 1
                if count == 4:
                    break
        async with reader(running.address).subscribe("orders") as consumer:
            assert await consumer.committed(QUEUE) == 4
            assert bodies(await read(consumer, 6)) == sorted(sent[4:])


async def test_what_an_iteration_left_can_be_polled() -> None:
    async with cluster(1, 1) as running:
        sent = await send(running.address, 10)
        async with reader(running.address).subscribe("orders") as consumer:
            assert (await anext(consumer)).body == sent[0]
            assert [m.body for m in await consumer.poll(5)] == sent[1:]


async def test_a_group_without_an_offset_has_none_committed() -> None:
    """Brokers say 0 for a queue all of whose messages they still hold in memory."""
    async with cluster(1, 2) as running:
        await send(running.address, 2)
        async with reader(running.address) as consumer:
            queues = await consumer.queues("orders")
            assert [await consumer.committed(queue) for queue in queues] == [0, 0]
            nowhere = MessageQueue("orders", "broker-0", 9)
            assert await consumer.committed(nowhere) is None


# Seeking


async def test_seeking_goes_back_and_forth() -> None:
    async with cluster(1, 1) as running:
        sent = await send(running.address, 30)
        async with reader(running.address).subscribe("orders") as consumer:
            await read(consumer, 30)
            await consumer.seek(QUEUE, 20)
            assert [m.body for m in await read(consumer, 10)] == sent[20:]
            await consumer.seek_to_begin(QUEUE)
            assert [m.body for m in await read(consumer, 30)] == sent
            await consumer.seek(QUEUE, 5)
            await consumer.seek_to_end(QUEUE)
            more = await send(running.address, 1)
            assert [m.body for m in await read(consumer, 1)] == more


async def test_a_seek_throws_away_what_is_cached() -> None:
    async with cluster(1, 1) as running:
        sent = await send(running.address, 40)
        async with reader(running.address, pull_batch=10).subscribe("orders") as consumer:
            parts = consumer._life.running().parts
            await until(lambda: len(parts.cache) == 4, "a full cache")
            await consumer.seek(QUEUE, 35)
            assert [m.body for m in await read(consumer, 5)] == sent[35:]
            assert await consumer.poll(0.05) == []


async def test_what_was_sought_can_be_committed() -> None:
    async with cluster(1, 1) as running:
        await send(running.address, 30)
        async with reader(running.address).subscribe("orders") as consumer:
            await read(consumer, 30)
            await consumer.seek(QUEUE, 12)
            await consumer.commit()
            assert await consumer.committed(QUEUE) == 12


async def test_only_offsets_that_a_queue_holds_can_be_sought() -> None:
    async with cluster(1, 1) as running:
        await send(running.address, 10)
        async with reader(running.address).subscribe("orders") as consumer:
            await read(consumer, 10)
            for wrong in (-1, 11):
                with pytest.raises(InvalidInput, match="the queue has offsets 0 to 10"):
                    await consumer.seek(QUEUE, wrong)
            with pytest.raises(InvalidInput, match="not assigned"):
                await consumer.seek(MessageQueue("orders", "broker-0", 5), 0)


async def test_the_offset_of_a_time_is_that_of_the_first_message_since() -> None:
    async with cluster(1, 1) as running:
        await send(running.address, 10)
        async with reader(running.address).subscribe("orders") as consumer:
            got = await read(consumer, 10)
            last = got[-1].store_timestamp
            first_then = min(m.queue_offset for m in got if m.store_timestamp == last)
            assert await consumer.offset_for_time(QUEUE, last) == first_then
            assert await consumer.offset_for_time(QUEUE, 0) == 0
            assert await consumer.offset_for_time(QUEUE, last + 60) == 10


async def test_a_reset_by_an_operator_moves_a_consumer_at_once() -> None:
    async with cluster(1, 1) as running:
        sent = await send(running.address, 10)
        async with reader(running.address).subscribe("orders") as consumer:
            await read(consumer, 10)
            member = consumer._life.running()
            await member.reset_offsets("orders", {QUEUE: 7, MessageQueue("orders", "b", 9): 1})
            assert [m.body for m in await read(consumer, 3)] == sent[7:]
            assert (await member.offsets_reached("orders"))[QUEUE] == 7


# Broadcasting


async def test_every_broadcasting_consumer_gets_everything_and_goes_on_where_it_was(
    tmp_path: Path,
) -> None:
    async with cluster() as running:
        sent = await send(running.address, 20)
        settings: dict[str, Any] = {
            "model": MessageModel.BROADCASTING,
            "offsets_dir": str(tmp_path),
        }
        async with (
            reader(running.address, "a", **settings).subscribe("orders") as a,
            reader(running.address, "b", **settings).subscribe("orders") as b,
        ):
            assert bodies(await read(a, 20)) == bodies(await read(b, 20)) == sorted(sent)
            await b.commit()
            assert (tmp_path / "10.0.0.1@b@STREAM" / "audit" / "offsets.json").exists()
        more = await send(running.address, 4)
        async with reader(running.address, "a", **settings).subscribe("orders") as a:
            assert bodies(await read(a, 4)) == sorted(more)


@leaping
async def test_what_the_first_polls_gave_is_stored_soon() -> None:
    """Who ends without a farewell has stored nearly everything, also if it ends early."""
    async with cluster(1, 1) as running:
        await send(running.address, 30)
        async with reader(running.address).subscribe("orders") as consumer:
            await read(consumer, 30)
            await leap(1.1)
            assert not await consumer.poll(0.01)  # what was polled before is done with
            await leap(1.1)
            async with asyncio.timeout(10):
                while await consumer.committed(QUEUE) != 30:
                    continue
