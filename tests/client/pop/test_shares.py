"""How a group's messages are shared by members that pop: counts on real brokers."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from pocketmq.client.consumer.push import PushConsumer
from pocketmq.client.pop import PopConsumer
from pocketmq.client.producer.producer import Producer
from pocketmq.embedded import Cluster
from pocketmq.model.kinds import ConsumeFromWhere, MessageRequestMode
from pocketmq.model.message import Message
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.bodies.assignment import RequestMode
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.headers.pop import PollingInfoRequest, PollingInfoResponse
from pocketmq.protocol.json_values import encode_body
from pocketmq.protocol.received import ReceivedMessage
from tests.loops import LOOPS, until
from tests.wire_client import WireClient

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
BROKERS = ("broker-0", "broker-1")
TURNS = 24
"""Messages sent to each broker."""
PATIENCE = 5.0
"""Seconds in all that sending waits for members that do not hold pops."""
TOPICS = [f"shared-{count}-{loop}" for count in (1, 2) for loop in LOOPS]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, in_process=False) as running:
        for topic in TOPICS:
            running.create_topic(topic, 1)
        yield running


class Group:
    """A group with a topic of its own, and who got what."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.got: Counter[str] = Counter()
        self.bodies: Counter[bytes] = Counter()
        self.members = 0
        self._patience = PATIENCE

    def took(self, member: str, messages: list[ReceivedMessage]) -> None:
        self.got[member] += len(messages)
        self.bodies.update(message.body for message in messages)

    def held(self, broker: str) -> int:
        """Return how many pops a broker holds for the group."""
        with WireClient(self.cluster.brokers[broker].address) as client:
            asked = PollingInfoRequest(consumer_group=self.name, topic=self.name, queue_id=-1)
            answer = client.ask(RequestCode.POLLING_INFO, asked)
            return answer.header(PollingInfoResponse).polling_num

    async def all_hold(self) -> None:
        """Wait until every member holds a pop at every broker, within what patience is left."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while loop.time() - began < self._patience:
            if all(self.held(broker) >= self.members for broker in BROKERS):
                break
            await asyncio.sleep(0.002)
        self._patience -= loop.time() - began

    @asynccontextmanager
    async def push(self, member: str) -> AsyncIterator[None]:
        """A push consumer that pops and keeps up."""
        mode = RequestMode(
            topic=self.name,
            consumer_group=self.name,
            mode=MessageRequestMode.POP,
            pop_share_queue_num=0,
        )
        for broker in self.cluster.brokers.values():
            with WireClient(broker.address) as client:
                answer = client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=encode_body(mode))
                assert answer.code == 0, answer.remark

        async def handle(message: ReceivedMessage) -> None:
            self.took(member, [message])

        consumer = PushConsumer(
            self.cluster.address,
            group=self.name,
            instance_name=member,
            consume_from=FIRST,
            client_rebalance=False,
        )
        consumer.subscribe(self.name, "*", handle)
        self.members += 1
        async with consumer:
            await until(lambda: all(map(self.held, BROKERS)), "the push consumer to hold pops")
            yield

    @asynccontextmanager
    async def pop(self, member: str) -> AsyncIterator[None]:
        """A POP consumer whose receives are short."""
        consumer = PopConsumer(
            self.cluster.address, group=self.name, instance_name=member, consume_from=FIRST
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

    async def send(self) -> int:
        """Send one message after another, each once the members wait again."""
        sent = 0
        async with Producer(self.cluster.address, group="senders") as producer:
            for _ in range(TURNS):
                for broker in BROKERS:
                    await self.all_hold()
                    queue = MessageQueue(topic=self.name, broker_name=broker, queue_id=0)
                    await producer.send(Message(self.name, b"%d" % sent), queue=queue)
                    sent += 1
                    await until(lambda: self.got.total() >= sent, "the message to be taken")  # noqa: B023
        return sent


@pytest.mark.parametrize("count", [1, 2])
async def test_pop_consumers_of_several_brokers_get_their_share_beside_a_push_consumer(
    cluster: Cluster, count: int, loop_name: str
) -> None:
    group = Group(cluster, f"shared-{count}-{loop_name}")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(group.push("push"))
        for number in range(count):
            await stack.enter_async_context(group.pop(f"pop-{number}"))
        sent = await group.send()
    members = ["push", *(f"pop-{number}" for number in range(count))]
    fair = sent / len(members)
    assert set(group.bodies.values()) == {1}
    assert all(fair / 2 <= group.got[member] <= fair * 2 for member in members), group.got
