"""A producer on a real cluster: what arrives, and what happens when parts of it fail."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from pocketmq import errors
from pocketmq.client.producer.producer import Producer
from pocketmq.embedded.aio import Cluster
from pocketmq.embedded.fault_proxy import FaultProxy, Way
from pocketmq.model import Message, MessageQueue
from tests.client.producer.stage import ask_anew, stored
from tests.loops import until

MESSAGE = Message("orders", b"42 EUR")


async def test_a_message_arrives_as_it_was_sent() -> None:
    message = Message(
        "orders", b"x" * 5000, tag="paid", keys=["A17", "B2"], properties={"region": "eu"}, flag=9
    )
    async with Cluster() as cluster, Producer(cluster.address, group="shop") as producer:
        receipt = await producer.send(message)
        (found,) = await stored(producer.session, receipt.queue)
        assert (found.topic, found.body, found.tag, found.flag) == (
            "orders",
            b"x" * 5000,
            "paid",
            9,
        )
        assert found.properties["KEYS"] == "A17 B2"
        assert found.properties["region"] == "eu"
        assert found.properties["UNIQ_KEY"] == receipt.message_id
        assert found.queue_offset == receipt.queue_offset
        assert len(found.stored_body) < 100


async def test_a_priority_is_the_queue_of_a_message() -> None:
    async with Cluster() as cluster, Producer(cluster.address, group="shop") as producer:
        await cluster.create_topic("urgent", 4, message_type="PRIORITY")
        sent = [Message("urgent", b"%d" % each, priority=each) for each in (0, 3, 99)]
        receipts = [await producer.send(message) for message in sent]
        receipts += await asyncio.gather(*(producer.submit(message) for message in sent))
        assert [receipt.queue.queue_id for receipt in receipts] == [0, 3, 3] * 2
        found = await stored(producer.session, receipts[1].queue)
        assert sorted(each.priority or 0 for each in found) == [3, 3, 99, 99]
        assert found[0].user_properties == {}


async def test_a_batch_arrives_in_order_at_the_offsets_of_its_receipt() -> None:
    batch = [Message("orders", b"%d" % number, tag=f"t{number}") for number in range(20)]
    async with Cluster() as cluster, Producer(cluster.address, group="shop") as producer:
        receipt = await producer.send_batch(batch)
        found = await stored(producer.session, receipt.queue)
        assert [message.body for message in found] == [message.body for message in batch]
        assert [message.tag for message in found] == [message.tag for message in batch]
        ids = [message.properties["UNIQ_KEY"] for message in found]
        assert ",".join(ids) == receipt.message_id
        assert found[0].queue_offset == receipt.queue_offset


async def test_all_queues_of_all_brokers_get_their_share() -> None:
    async with Cluster(brokers=2) as cluster:
        topic = await cluster.create_topic("orders", queues=4)
        async with Producer(cluster.address, group="shop", batch_bytes=0) as producer:
            receipts = await asyncio.gather(*[producer.submit(MESSAGE) for _ in range(80)])
            counts = Counter(receipt.queue for receipt in receipts)
            assert counts == dict.fromkeys(await producer.queues(topic), 10)


async def test_a_topic_is_made_by_its_first_message_if_brokers_do_so() -> None:
    async with Cluster(brokers=2) as cluster, Producer(cluster.address, group="shop") as producer:
        receipt = await producer.send(Message("fresh", b"x"))
        (found,) = await stored(producer.session, receipt.queue)
        assert found.body == b"x"
    config = {"autoCreateTopicEnable": False}
    async with (
        Cluster(config=config) as cluster,
        Producer(cluster.address, group="shop") as producer,
    ):
        with pytest.raises(
            errors.RouteNotFound, match="no route for topic 'fresh'; create the topic"
        ):
            await producer.send(Message("fresh", b"x"))


async def test_what_the_broker_finds_too_large_is_refused_by_it_with_its_reason() -> None:
    async with (
        Cluster(config={"maxMessageSize": 1000}) as cluster,
        Producer(cluster.address, group="shop", compress_from=10_000) as producer,
    ):
        with pytest.raises(errors.SendFailed, match="will fail again") as caught:
            await producer.send(Message("orders", b"x" * 2000))
        assert isinstance(caught.value.last_error, errors.MessageIllegal)
        with pytest.raises(errors.InvalidInput, match="over the limit of 4194304"):
            await producer.send(Message("orders", b"x" * 4194305))


async def test_a_killed_broker_costs_nobody_a_message_and_is_used_again_when_back(
    tmp_path: Path,
) -> None:
    async with Cluster(brokers=2, data=tmp_path) as cluster:
        topic = await cluster.create_topic("orders", queues=2)
        async with Producer(cluster.address, group="shop") as producer:
            await producer.send(MESSAGE)
            await cluster.kill("broker-0")
            for _ in range(8):
                receipt = await producer.send(MESSAGE)
                assert receipt.queue.broker_name == "broker-1"
            await cluster.restart("broker-0")
            await ask_anew(producer, topic)  # what the poll does every 30 s
            seen = {(await producer.send(MESSAGE)).queue.broker_name for _ in range(8)}
            assert seen == {"broker-0", "broker-1"}
            assert len(await producer.queues(topic)) == 4


async def test_with_all_brokers_gone_the_failure_is_quick_and_clear() -> None:
    async with Cluster() as cluster, Producer(cluster.address, group="shop") as producer:
        await producer.send(MESSAGE)
        await cluster.kill("broker-0")
        with pytest.raises(
            errors.SendFailed, match="the message was not stored and can be resent"
        ) as caught:
            await producer.send(MESSAGE)
        assert isinstance(caught.value.last_error, errors.TransportError)
        assert not caught.value.outcome_unknown
        await cluster.restart("broker-0")
        assert (await producer.send(MESSAGE)).ok


async def test_known_topics_go_on_while_the_name_server_is_gone() -> None:
    async with Cluster() as cluster, FaultProxy(cluster.address) as proxy:
        await cluster.create_topic("orders", queues=2)
        async with Producer(proxy.address, group="shop") as producer:
            await producer.send(MESSAGE)
            await proxy.refuse()
            proxy.cut()
            assert (await producer.send(MESSAGE)).ok
            with pytest.raises(errors.NameServersUnreachable, match="no name server responds at"):
                await producer.send(Message("fresh", b"x"))
            routes = producer.session.routes  # a question of its own may have been refused already
            await until(lambda: not routes._asking, "the end of all questions")
            proxy.accept()
            assert (await producer.send(Message("fresh", b"x"))).ok


async def test_a_partitioned_broker_costs_one_try_and_its_connection() -> None:
    async with Cluster(brokers=2, faults=True) as cluster:
        await cluster.create_topic("orders", queues=2)
        options = {"send_timeout": 8.0, "send_timeout_per_try": 1.1}
        async with Producer(cluster.address, group="shop", **options) as producer:  # type: ignore[arg-type]
            for _ in range(4):
                await producer.send(MESSAGE)
            await cluster.partition("broker-0")
            receipts = await asyncio.gather(*[producer.send(MESSAGE) for _ in range(8)])
            assert {receipt.queue.broker_name for receipt in receipts} == {"broker-1"}
            pinned = MessageQueue("orders", "broker-0", 0)
            with pytest.raises(errors.SendFailed) as caught:
                await producer.send(MESSAGE, queue=pinned, timeout=0.2)
            assert isinstance(caught.value.last_error, errors.TransportError)
            await cluster.heal("broker-0")

            async def back() -> bool:
                try:
                    return (await producer.send(MESSAGE, queue=pinned)).ok
                except errors.SendFailed:
                    return False

            tries = 0
            while not await back():
                tries += 1
                assert tries < 20


async def test_an_answer_that_is_lost_leaves_the_outcome_unknown_and_the_message_stored() -> None:
    async with (
        Cluster(faults=False) as cluster,
        FaultProxy(cluster.brokers["broker-0"].address) as proxy,
    ):
        await cluster.create_topic("orders", queues=1)
        async with Producer(cluster.address, group="shop", retries=0) as producer:
            receipt = await producer.send(MESSAGE)
            through(producer, proxy.address)
            proxy.swallow(Way.TO_CLIENT)
            with pytest.raises(errors.SendFailed) as caught:
                await producer.send(MESSAGE, timeout=2.0)
            assert isinstance(caught.value.last_error, errors.RequestTimedOut)
            assert caught.value.outcome_unknown
            proxy.pass_through()
            proxy.cut()
            calls = producer.session.calls
            await until(lambda: calls.connected(proxy.address) is None, "the end to be noticed")
            assert len(await stored(producer.session, receipt.queue)) == 2


def through(producer: Producer, address: str) -> None:
    """Lead a producer's way to the only broker over another address."""
    known = producer.session.routes.cached("orders")
    assert known is not None
    (data,) = known.route.broker_datas
    data.broker_addrs[0] = address
    producer.session.addresses.take([data])


async def test_answers_that_trickle_in_and_requests_cut_anywhere_are_survived() -> None:
    async with Cluster() as cluster, FaultProxy(cluster.brokers["broker-0"].address) as proxy:
        await cluster.create_topic("orders", queues=1)
        async with Producer(cluster.address, group="shop", send_timeout=5.0) as producer:
            await producer.send(MESSAGE)
            through(producer, proxy.address)
            proxy.trickle(3)
            receipts = await asyncio.gather(*[producer.submit(MESSAGE) for _ in range(20)])
            assert sorted(receipt.queue_offset for receipt in receipts) == list(range(1, 21))
            proxy.pass_through()
            for count in (1, 8, 100, 300):
                proxy.cut_after(count, Way.TO_SERVER)
                assert (await producer.send(MESSAGE)).ok  # the second try is whole
            await until(lambda: len(producer.sending.window) == 0, "nothing under way")


async def test_one_way_messages_arrive_although_nobody_waits() -> None:
    async with Cluster() as cluster:
        topic = await cluster.create_topic("orders", queues=1)
        async with Producer(cluster.address, group="shop") as producer:
            for number in range(5):
                await producer.send_oneway(Message(topic, b"%d" % number))
        async with Producer(cluster.address, group="shop") as producer:
            (queue,) = await producer.queues(topic)
            assert [m.body for m in await stored(producer.session, queue)] == [
                b"0", b"1", b"2", b"3", b"4"
            ]  # fmt: skip


async def test_a_delay_level_holds_a_message_back() -> None:
    async with Cluster() as cluster:
        await cluster.create_topic("orders", queues=1)
        async with Producer(cluster.address, group="shop") as producer:
            receipt = await producer.send(MESSAGE, delay_level=18)
            assert await stored(producer.session, receipt.queue) == []
            (late,) = await stored(
                producer.session, MessageQueue("SCHEDULE_TOPIC_XXXX", "broker-0", 17)
            )
            assert late.properties["DELAY"] == "18"
            assert late.properties["REAL_TOPIC"] == "orders"
