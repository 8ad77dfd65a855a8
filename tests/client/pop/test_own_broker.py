"""Our POP consumers on our brokers: what is taken, acknowledged, hidden for longer, comes back."""

import asyncio
from collections.abc import Iterator

import pytest

from pocketmq.client.pop.consumer import PopConsumer
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.embedded import Cluster
from pocketmq.model import ConsumeFromWhere, Message, MessageRequestMode
from pocketmq.protocol import ReceivedMessage, RequestCode, encode_body
from pocketmq.protocol.requests.assignment import RequestMode
from tests.wire_client import WireClient

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
PATIENCE = 60.0
"""Seconds for what brokers do, which may be without a processor for a few of them."""
TOPICS = {"popped": 2, "returned": 1, "awaited": 1, "in-order": 1, "crowded": 2, "pushed": 2}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, in_process=False) as running:
        for topic, queues in TOPICS.items():
            running.create_topic(topic, queues)
        yield running


async def send(cluster: Cluster, topic: str, count: int, key: str | None = None) -> list[bytes]:
    bodies = [b"%s %02d" % (topic.encode(), n) for n in range(count)]
    async with Producer(cluster.address, group="senders", send_timeout=PATIENCE) as producer:
        for n, body in enumerate(bodies):
            tag = "even" if n % 2 == 0 else "odd"
            await producer.send(Message(topic, body, tag=tag), ordering_key=key)
    return bodies


async def receive(consumer: PopConsumer, count: int) -> list[ReceivedMessage]:
    """Receive until there are so many."""
    got: list[ReceivedMessage] = []
    async with asyncio.timeout(PATIENCE):
        while len(got) < count:
            got += await consumer.receive(timeout=5)
    return got


def bodies(messages: list[ReceivedMessage]) -> list[bytes]:
    return sorted(message.body for message in messages)


async def test_what_is_not_acknowledged_comes_back_and_the_rest_does_not(cluster: Cluster) -> None:
    sent = await send(cluster, "popped", 20)
    hidden = 5.0  # longer than it takes to receive and acknowledge them, also on a busy machine
    consumer = PopConsumer(
        cluster.address,
        request_timeout=PATIENCE,
        group="poppers",
        consume_from=FIRST,
        invisible=hidden,
    )
    async with consumer.subscribe("popped"):
        got = await receive(consumer, 20)
        assert bodies(got) == sent
        assert {message.broker_name for message in got} == {"broker-0", "broker-1"}
        await consumer.ack(got[0])
        await consumer.ack(got[1:15])
        longer = await consumer.change_invisible(got[15], 60)
        back = await receive(consumer, 4)
        assert bodies(back) == bodies(got[16:])
        assert {(m.reconsume_times, m.topic) for m in back} == {(1, "popped")}
        await consumer.ack(back)
        await consumer.ack(longer)
        assert await consumer.receive(timeout=hidden + 0.5) == []


async def test_a_message_can_be_given_back_at_once(cluster: Cluster) -> None:
    await send(cluster, "returned", 1)
    consumer = PopConsumer(
        cluster.address,
        request_timeout=PATIENCE,
        group="returners",
        consume_from=FIRST,
        invisible=300,
    )
    async with consumer.subscribe("returned"):
        (message,) = await receive(consumer, 1)
        await consumer.change_invisible(message, 0.1)
        (again,) = await receive(consumer, 1)
        assert (again.body, again.reconsume_times) == (message.body, 1)
        await consumer.ack(again)


async def test_a_waiting_receiver_gets_what_comes_on_any_broker(cluster: Cluster) -> None:
    consumer = PopConsumer(cluster.address, request_timeout=PATIENCE, group="waiters")
    async with consumer.subscribe("awaited"):
        assert await consumer.receive(timeout=0.1) == []
        for _ in range(4):
            waiting = asyncio.ensure_future(consumer.receive(timeout=PATIENCE))
            sent = await send(cluster, "awaited", 1)
            async with asyncio.timeout(10):  # less than the broker would hold it
                got = await waiting
            assert bodies(got) == sent
            await consumer.ack(got)


async def test_ordered_messages_wait_for_those_before_them(cluster: Cluster) -> None:
    """A queue gives nothing more before what it gave is acknowledged; then it goes on in order."""
    sent = await send(cluster, "in-order", 6, key="one")
    consumer = PopConsumer(
        cluster.address,
        request_timeout=PATIENCE,
        group="orderers",
        consume_from=FIRST,
        ordered=True,
        invisible=300.0,
    )
    async with consumer.subscribe("in-order"):
        first = await consumer.receive(2, invisible=1.0)
        assert [message.body for message in first] == sent[:2]
        async with asyncio.timeout(PATIENCE):
            while not (again := await consumer.receive(2)):
                pass
        assert [message.body for message in again] == sent[:2]
        assert [message.reconsume_times for message in again] == [1, 1]
        await consumer.ack(again)
        rest = await receive(consumer, 4)
        assert [message.body for message in rest] == sent[2:]
        await consumer.ack(rest)


async def test_many_receivers_share_a_few_queues(cluster: Cluster) -> None:
    """Hundreds of members, each with a connection of its own: everything once, nobody starves."""
    consumers = [
        PopConsumer(
            cluster.address,
            request_timeout=PATIENCE,
            group="crowd",
            consume_from=FIRST,
            instance_name=f"m{n}",
        )
        for n in range(100)
    ]
    got: list[bytes] = []
    all_there = asyncio.Event()

    async def member(consumer: PopConsumer) -> None:
        async with consumer.subscribe("crowded"):
            while True:
                for message in await consumer.receive(1, timeout=15):
                    got.append(message.body)
                    await consumer.ack(message)
                    if len(got) >= 300:
                        all_there.set()

    members = [asyncio.ensure_future(member(consumer)) for consumer in consumers]
    try:
        sent = await send(cluster, "crowded", 300)
        async with asyncio.timeout(PATIENCE):
            await all_there.wait()
    finally:
        for task in members:
            task.cancel()
        await asyncio.gather(*members, return_exceptions=True)
    assert sorted(got) == sorted(sent)


async def test_a_push_consumer_pops_where_the_broker_says_so(cluster: Cluster) -> None:
    """What a handler does not finish comes again, what it finishes does not."""
    mode = RequestMode(
        topic="pushed", consumer_group="pushers", mode=MessageRequestMode.POP, pop_share_queue_num=0
    )
    for broker in cluster.brokers.values():
        with WireClient(broker.address) as client:
            answer = client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=encode_body(mode))
            assert answer.code == 0, answer.remark
    tries: dict[bytes, list[int]] = {}
    all_done = asyncio.Event()

    async def handle(message: ReceivedMessage) -> None:
        tries.setdefault(message.body, []).append(message.reconsume_times)
        if sum(map(len, tries.values())) == 20:
            all_done.set()

    consumer = PushConsumer(
        cluster.address,
        request_timeout=PATIENCE,
        group="pushers",
        consume_from=FIRST,
        client_rebalance=False,
    )
    consumer.subscribe("pushed", "*", handle)
    async with consumer:
        sent = await send(cluster, "pushed", 20)
        async with asyncio.timeout(PATIENCE):
            await all_done.wait()
        assert tries == {body: [0] for body in sent}
        queues = consumer.assignment()["pushed"]
        assert {(queue.broker_name, queue.queue_id) for queue in queues} == {
            ("broker-0", -1),
            ("broker-1", -1),
        }
    other = PopConsumer(cluster.address, request_timeout=PATIENCE, group="pushers")
    async with other.subscribe("pushed"):
        assert await other.receive(timeout=0.5) == []
