"""Groups of push consumers on an embedded cluster, each a client of its own with a known id."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec

from pocketmq.balance.allocation import Strategy, allocate
from pocketmq.balance.profile import V5
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.embedded.aio import Cluster
from pocketmq.model import ConsumeFromWhere, Message, MessageQueue
from pocketmq.protocol import ReceivedMessage
from tests.loops import until

BRISK = msgspec.structs.replace(
    V5,
    rebalance_min_interval=0.01,
    unbalanced_interval=0.05,
    lock_denied_interval=0.05,
    pull_start_delay=0.0,
    release_wait=0.2,
)
"""5.x without its pauses; the timer stays at 20 s, so what happens sooner was called for."""

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
IP = "10.0.0.1"


class Member:
    """A consumer that keeps what it gets."""

    def __init__(self, address: str, name: str, group: str = "billing", **settings: Any) -> None:
        self.name = name
        self.client_id = f"{IP}@{name}"
        self.got: list[ReceivedMessage] = []
        self.consumer = PushConsumer(
            address,
            group=group,
            **{
                "client_ip": IP,
                "instance_name": name,
                "profile": BRISK,
                "consume_from": FIRST,
                **settings,
            },
        )

    async def handle(self, message: ReceivedMessage) -> None:
        self.got.append(message)

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.got]

    def queues(self, topic: str = "orders") -> tuple[MessageQueue, ...]:
        return self.consumer.assignment().get(topic, ())


@asynccontextmanager
async def member(address: str, name: str = "a", **settings: Any) -> AsyncIterator[Member]:
    """A running member that consumes `orders`."""
    topics: Iterable[str] = settings.pop("topics", ("orders",))
    expression = settings.pop("expression", "*")
    one = Member(address, name, **settings)
    for topic in topics:
        one.consumer.subscribe(topic, expression, one.handle)
    async with one.consumer:
        yield one


@asynccontextmanager
async def members(address: str, *names: str, **settings: Any) -> AsyncIterator[list[Member]]:
    """Several members, started one after another."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(member(address, name, **settings)) for name in names]


@asynccontextmanager
async def cluster(
    brokers: int = 1, queues: int = 4, *topics: str, **settings: Any
) -> AsyncIterator[Cluster]:
    """A cluster with the topic `orders`, or with others."""
    async with Cluster(brokers=brokers, **settings) as running:
        for topic in topics or ("orders",):
            await running.create_topic(topic, queues)
        yield running


def queues_of(brokers: int, queues: int, topic: str = "orders") -> list[MessageQueue]:
    """All queues of a topic."""
    return [
        MessageQueue(topic, f"broker-{broker}", queue)
        for broker in range(brokers)
        for queue in range(queues)
    ]


async def shared(
    group: Sequence[Member],
    queues: Sequence[MessageQueue],
    strategy: Strategy,
    name: str = "billing",
) -> None:
    """Wait until each member has exactly the share that the strategy gives it."""
    ids = [one.client_id for one in group]
    topic = queues[0].topic

    def right() -> bool:
        return all(
            set(one.queues(topic)) == set(allocate(strategy, name, one.client_id, queues, ids))
            for one in group
        )

    await until(right, f"the shares of {strategy.name}")


async def send(address: str, count: int, topic: str = "orders", **message: Any) -> list[bytes]:
    """Send numbered messages, one queue after another, and give their bodies."""
    bodies = [str(number).encode() for number in range(count)]
    async with Producer(address, group="senders") as producer:
        await asyncio.gather(*(producer.send(Message(topic, body, **message)) for body in bodies))
    return bodies
