"""How a group's messages are shared by members that pop: counts on real brokers."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from threading import Event

import pytest

from pocketmq.blocking.pop_consumer import PopConsumer as BlockingPopConsumer
from pocketmq.client.pop.consumer import PopConsumer
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.embedded import Cluster
from pocketmq.model import ConsumeFromWhere, Message
from pocketmq.protocol import ReceivedMessage
from tests.client.pop.turns import Turns
from tests.loops import until

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
TURNS = 24
"""Messages sent to each broker."""
PATIENCE = 40.0
"""Seconds in all that sending waits for members that do not hold pops."""
ANSWER = 30.0
"""Seconds for a request, whose broker may be without a processor for a few of them."""
TOPICS = ["shared-1", "shared-2", "left", "threads"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, in_process=False) as running:
        for topic in TOPICS:
            running.create_topic(topic, 1)
        yield running


class Group(Turns):
    """A group, and who got what."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        addresses = {name: broker.address for name, broker in cluster.brokers.items()}
        super().__init__(name, addresses, PATIENCE)
        self.cluster = cluster
        self.got: Counter[str] = Counter()
        self.bodies: Counter[bytes] = Counter()

    def took(self, member: str, messages: list[ReceivedMessage]) -> None:
        self.got[member] += len(messages)
        self.bodies.update(message.body for message in messages)

    @asynccontextmanager
    async def push(self, member: str) -> AsyncIterator[None]:
        """A push consumer that pops and keeps up."""
        self.push_consumers_pop()

        async def handle(message: ReceivedMessage) -> None:
            self.took(member, [message])

        consumer = PushConsumer(
            self.cluster.address,
            request_timeout=ANSWER,
            group=self.name,
            instance_name=member,
            consume_from=FIRST,
            client_rebalance=False,
        )
        consumer.subscribe(self.name, "*", handle)
        self.members += 1
        async with consumer:
            await until(self.held, "the push consumer to hold pops")
            yield

    @asynccontextmanager
    async def pop(self, member: str) -> AsyncIterator[None]:
        """A POP consumer whose receives are short."""
        consumer = PopConsumer(
            self.cluster.address,
            request_timeout=ANSWER,
            group=self.name,
            instance_name=member,
            consume_from=FIRST,
        )

        async def work() -> None:
            while True:
                messages = await consumer.receive(timeout=1)
                self.took(member, messages)
                await consumer.ack(messages)

        self.members += 1
        async with consumer.subscribe(self.name):
            working = asyncio.ensure_future(work())
            try:
                yield
            finally:
                working.cancel()
                await asyncio.wait({working})


@pytest.mark.parametrize("count", [1, 2])
async def test_pop_consumers_of_several_brokers_get_their_share_beside_a_push_consumer(
    cluster: Cluster, count: int
) -> None:
    group = Group(cluster, f"shared-{count}")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(group.push("push"))
        for number in range(count):
            await stack.enter_async_context(group.pop(f"pop-{number}"))
        sent = await group.send(cluster.address, TURNS, group.got.total)
    members = ["push", *(f"pop-{number}" for number in range(count))]
    fair = sent / len(members)
    assert set(group.bodies.values()) == {1}
    assert all(fair / 2 <= group.got[member] <= fair * 2 for member in members), group.got


def test_a_blocking_pop_consumer_gets_its_share_as_well(cluster: Cluster) -> None:
    group = Group(cluster, "threads")
    consumer = BlockingPopConsumer(
        cluster.address, request_timeout=ANSWER, group=group.name, consume_from="first"
    )
    stop = Event()

    def work() -> None:
        with consumer.subscribe(group.name):
            while not stop.is_set():
                messages = consumer.receive(timeout=0.2)
                group.took("blocking", messages)
                consumer.ack(messages)

    async def story() -> int:
        async with group.push("push"):
            group.members += 1
            working = asyncio.ensure_future(asyncio.to_thread(work))
            try:
                return await group.send(cluster.address, TURNS, group.got.total)
            finally:
                stop.set()
                await working

    sent = asyncio.run(story())
    assert set(group.bodies.values()) == {1}
    assert sent / 4 <= group.got["blocking"] <= sent * 3 / 4, group.got


async def test_nothing_waits_for_a_consumer_that_was_closed(cluster: Cluster) -> None:
    """Members leave while messages come; what they popped and did not deliver is free at once."""
    topic = "left"
    got: Counter[bytes] = Counter()

    def member(name: str) -> PopConsumer:
        consumer = PopConsumer(
            cluster.address,
            request_timeout=ANSWER,
            group=topic,
            instance_name=name,
            consume_from=FIRST,
            invisible=300.0,
        )
        return consumer.subscribe(topic)

    async with Producer(cluster.address, group="senders", send_timeout=ANSWER) as producer:

        async def send(count: int, first: int) -> None:
            for number in range(first, first + count):
                await producer.send(Message(topic, b"%d" % number))

        for turn in range(4):
            async with member(f"leaver-{turn}") as leaver:
                assert await leaver.receive(timeout=0.01) == []  # its pops stay held
                sending = asyncio.ensure_future(send(8, 8 * turn))
                messages = await leaver.receive()
                got.update(message.body for message in messages)
                await leaver.ack(messages)
            await sending
            async with member(f"stayer-{turn}") as stayer, asyncio.timeout(30):
                while len(got) < 8 * (turn + 1):
                    messages = await stayer.receive(timeout=1)
                    got.update(message.body for message in messages)
                    await stayer.ack(messages)
    assert set(got.values()) == {1}
