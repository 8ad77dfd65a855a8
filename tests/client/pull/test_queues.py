"""Which queues a pull consumer reads: its share, or those of its choice; names and filters."""

import asyncio
from collections.abc import Sequence

import pytest

from pocketmq.balance.allocation import Average, allocate
from pocketmq.client.filters import by_sql
from pocketmq.client.producer.producer import Producer
from pocketmq.client.pull import PullConsumer
from pocketmq.errors import GroupTaken, InvalidInput, RouteNotFound, ServerError
from pocketmq.model import ConsumeType, Message, MessageQueue
from pocketmq.protocol import ReceivedMessage
from tests.client.group.groups import IP, cluster, queues_of, send
from tests.client.pull.readers import bodies, read, reader
from tests.loops import until


async def test_members_share_queues_by_javas_rule() -> None:
    queues = queues_of(2, 4)
    async with cluster(2) as running:
        names = ["a", "b", "c"]
        consumers = [reader(running.address, name).subscribe("orders") for name in names]
        async with consumers[0], consumers[1]:
            async with consumers[2]:
                await until(lambda: _right(consumers, names, queues), "three shares")
            await until(lambda: _right(consumers[:2], names[:2], queues), "two shares")
            sent = await send(running.address, 40)
            got: list[ReceivedMessage] = []
            async with asyncio.timeout(10):
                while len(got) < 40:
                    for consumer in consumers[:2]:
                        got += await consumer.poll(0.05)
            assert bodies(got) == sorted(sent)


def _right(consumers: list[PullConsumer], names: list[str], queues: list[MessageQueue]) -> bool:
    ids = [f"{IP}@{name}@STREAM" for name in names]
    return all(
        set(consumer.assignment().get("orders", ()))
        == set(allocate(Average(), "audit", own, queues, ids))
        for consumer, own in zip(consumers, ids, strict=True)
    )


async def test_callbacks_are_told_of_queues_that_come_and_go() -> None:
    async with cluster(1, 2) as running, reader(running.address).subscribe("orders") as a:
        told: list[tuple[str, list[int]]] = []
        a.on_assigned(lambda queues: told.append(("+", [q.queue_id for q in queues])))

        @a.on_revoked
        async def gone(queues: Sequence[MessageQueue]) -> None:
            told.append(("-", [q.queue_id for q in queues]))

        await until(lambda: told == [("+", [0, 1])], "both queues")
        async with reader(running.address, "b").subscribe("orders"):
            await until(lambda: told[1:] == [("-", [1])], "one to be revoked")


async def test_assigned_queues_are_read_whoever_else_reads_them() -> None:
    zero, one = queues_of(1, 2)
    async with cluster(1, 2) as running:
        await send(running.address, 20)
        async with (
            reader(running.address, "a").assign([zero]) as a,
            reader(running.address, "b").assign([zero]) as b,
        ):
            assert bodies(await read(a, 10)) == bodies(await read(b, 10))
            assert a.assignment() == {"orders": (zero,)}
            a.assign([one])
            assert {m.queue_id for m in await read(a, 10)} == {1}
            assert a.assignment() == {"orders": (one,)}


async def test_subscribing_and_assigning_exclude_each_other() -> None:
    async with cluster() as running:
        with pytest.raises(InvalidInput, match="exclude each other"):
            reader(running.address).subscribe("orders").assign(queues_of(1, 1))
        with pytest.raises(InvalidInput, match="exclude each other"):
            reader(running.address).assign(queues_of(1, 1)).subscribe("orders")
        with pytest.raises(InvalidInput, match="no queues given; pass some of"):
            reader(running.address).assign([])


async def test_a_topic_that_is_left_is_read_no_more_and_can_be_read_again() -> None:
    async with cluster(1, 1, "orders", "refunds") as running:
        consumer = reader(running.address).subscribe("orders").subscribe("refunds")
        async with consumer:
            await until(lambda: len(consumer.assignment()) == 2, "both topics")
            await send(running.address, 5)
            await read(consumer, 5)
            await consumer.commit()
            consumer.unsubscribe("orders")
            assert set(consumer.assignment()) == {"refunds"}
            more = await send(running.address, 3)
            await send(running.address, 1, "refunds")
            assert {m.topic for m in await read(consumer, 1)} == {"refunds"}
            consumer.subscribe("orders")
            assert bodies(await read(consumer, 3)) == sorted(more)


async def test_tags_choose_messages() -> None:
    async with cluster() as running:
        for tag in ("paid", "refunded", "Aa", "BB"):  # the last two have one hash code
            await send(running.address, 4, tag=tag)
        async with reader(running.address).subscribe("orders", "paid || Aa") as consumer:
            got = await read(consumer, 8)
            assert sorted(m.tag or "" for m in got) == ["Aa"] * 4 + ["paid"] * 4
        zero = queues_of(1, 1)
        async with reader(running.address, "b", "other").assign(zero, "refunded") as consumer:
            assert {m.tag for m in await read(consumer, 1)} == {"refunded"}


async def test_expressions_choose_messages() -> None:
    async with cluster() as running:
        async with Producer(running.address, group="senders") as producer:
            for price in range(6):
                await producer.send(
                    Message("orders", b"%d" % price, properties={"price": str(price)})
                )
        async with reader(running.address).subscribe("orders", by_sql("price > 3")) as consumer:
            assert bodies(await read(consumer, 2)) == [b"4", b"5"]


async def test_names_are_put_into_a_namespace_and_taken_out_again() -> None:
    async with cluster() as running:
        await running.create_topic("shop%orders", 1)
        async with Producer(running.address, group="senders", namespace="shop") as producer:
            await producer.send(Message("orders", b"1"))
        async with reader(running.address, namespace="shop").subscribe("orders") as consumer:
            (message,) = await read(consumer, 1)
            assert message.topic == "orders"
            assert set(consumer.assignment()) == {"orders"}
            (queue,) = await consumer.queues("orders")
            assert queue == MessageQueue("orders", "broker-0", 0)
            await consumer.commit()
            assert await consumer.committed(queue) == 1
            assert consumer._life.running().group == "shop%audit"


async def test_listeners_hear_of_queues_that_a_topic_gets() -> None:
    async with cluster(1, 2) as running:
        consumer = reader(running.address, topic_check_interval=0.05)
        told: list[tuple[str, int]] = []
        consumer.on_queues_changed("orders", lambda topic, q: told.append((topic, len(q))))
        async with consumer:
            running_consumer = consumer._life.running()
            await running_consumer._look()
            await running.create_topic("orders", 5)
            await until(lambda: told == [("orders", 5)], "the listener to be told")


async def test_a_listener_that_fails_does_not_keep_others_from_being_told() -> None:
    async with cluster(1, 2, "orders", "refunds") as running:
        consumer = reader(running.address, topic_check_interval=0.05)
        told: list[str] = []

        async def note(topic: str, queues: object) -> None:
            told.append(topic)

        def fail(topic: str, queues: object) -> None:
            raise ZeroDivisionError

        consumer.on_queues_changed("orders", fail)
        consumer.on_queues_changed("refunds", note)
        async with consumer:
            await consumer._life.running()._look()
            for topic in ("orders", "refunds"):
                await running.create_topic(topic, 3)
            await until(lambda: told == ["refunds"], "the other listener")


async def test_brokers_see_an_active_consumer_with_its_stream_mark() -> None:
    async with cluster() as running, reader(running.address).subscribe("orders") as consumer:
        member = consumer._life.running()
        data = member.consumer_data()
        assert data.consume_type is ConsumeType.CONSUME_ACTIVELY
        assert [each.topic for each in data.subscription_data_set] == ["orders"]
        assert consumer._life.running().session.client_id == f"{IP}@a@STREAM"
        await until(lambda: len(consumer.assignment()) == 1, "queues")
        info = await member.running_info(with_stacks=False)
        assert len(info.mq_table) == 4
        with pytest.raises(ServerError, match="no handler"):
            await member.consume_directly(None, None)  # type: ignore[arg-type]


async def test_a_group_has_one_consumer_in_a_client() -> None:
    async with cluster() as running, reader(running.address).subscribe("orders"):
        twin = reader(running.address)
        with pytest.raises(GroupTaken):
            await twin.start()
        await twin.close()


async def test_a_topic_that_does_not_exist_has_no_queues() -> None:
    async with cluster() as running, reader(running.address) as consumer:
        with pytest.raises(RouteNotFound):
            await consumer.queues("nowhere")
