"""Topics with priorities: Java's client and mqadmin on our broker, our clients on Java's.

Both brokers choose the same queues and hand out messages in the same order.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq import aio
from pocketmq.client.pop.consumer import PopConsumer
from pocketmq.embedded import Cluster
from pocketmq.model import ConsumeFromWhere, GroupConfig, Message, TopicConfig
from pocketmq.protocol import ReceivedMessage
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import PATIENCE, Admin, Jars
from tests.interop.test_clients_java import run

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

SENT = [0, 2, 1, 9, 3, 0, 2]
QUEUES = [0, 2, 1, 3, 3, 0, 2]
"""A topic has four queues: a priority beyond them goes to the last one."""
ORDER = [9, 3, 2, 2, 1, 0, 0]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(data=tmp_path_factory.mktemp("data"), in_process=False) as running:
        yield running


@pytest.fixture(scope="module")
def theirs(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    with java_brokers(jars, tmp_path_factory.mktemp("java"), "java-0") as running:
        yield running


async def popped(consumer: PopConsumer, count: int) -> list[ReceivedMessage]:
    """Receive one message after another; each is acknowledged."""
    got: list[ReceivedMessage] = []
    async with asyncio.timeout(PATIENCE):
        while len(got) < count:
            for message in await consumer.receive(1, timeout=5):
                got.append(message)
                await consumer.ack(message)
    return got


async def check_order(address: str, topic: str) -> None:
    consumer = PopConsumer(
        address,
        group=f"{topic}-group",
        consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        invisible=60.0,
    )
    async with consumer.subscribe(topic):
        got = await popped(consumer, len(SENT))
    assert [int(message.body) for message in got] == ORDER
    assert [message.priority for message in got] == ORDER
    assert [message.queue_id for message in got] == [3, 3, 2, 2, 1, 0, 0]


def test_javas_messages_are_popped_from_our_broker_by_priority(
    jars: Jars, tmp_path: Path, ours: Cluster
) -> None:
    with Admin(jars, tmp_path) as admin:
        words = "-c DefaultCluster -t java-urgent -r 4 -w 4 -a +message.type=PRIORITY"
        assert "success" in admin.run(f"updateTopic -n {ours.address} {words}")
    said = run(jars, tmp_path, "Urgent", ours.address, "java-urgent", *map(str, SENT))
    assert said == [f"{each} in {queue}" for each, queue in zip(SENT, QUEUES, strict=True)]
    asyncio.run(check_order(ours.address, "java-urgent"))


async def send_ours(address: str, topic: str) -> None:
    async with aio.Admin(address) as admin:
        for place in await admin.brokers.targets():
            attributes = {"+message.type": "PRIORITY"}
            config = TopicConfig(
                topic_name=topic, read_queue_nums=4, write_queue_nums=4, attributes=attributes
            )
            (await admin.topics.create(config, address=place.address)).all()
            group = GroupConfig(group_name=f"{topic}-group")
            (await admin.groups.create(group, address=place.address)).all()
    async with aio.Producer(address, group="urgent") as producer:
        queues = [
            (await producer.send(Message(topic, b"%d" % each, priority=each))).queue.queue_id
            for each in SENT
        ]
        assert queues == QUEUES
        await producer.flush()


@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize("broker", ["ours", "theirs"])
def test_our_messages_are_popped_by_priority(broker: str, request: pytest.FixtureRequest) -> None:
    address: str = request.getfixturevalue(broker).address

    async def story() -> None:
        await send_ours(address, "our-urgent")
        await check_order(address, "our-urgent")

    asyncio.run(story())


@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize("broker", ["ours", "theirs"])
def test_a_message_that_is_ordered_or_delayed_loses_its_priority(
    broker: str, request: pytest.FixtureRequest
) -> None:
    address: str = request.getfixturevalue(broker).address
    topic = "both-urgent"

    async def story() -> None:
        await send_ours(address, topic)
        async with aio.Producer(address, group="urgent") as producer:
            queue = (await producer.send(Message(topic, b"x", priority=3))).queue
            sent = await producer.send(
                Message(topic, b"late", priority=3), queue=_first_of(queue), delay_level=1
            )
            assert sent.queue.queue_id == 0
        consumer = PopConsumer(
            address,
            group="late-group",
            consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        async with consumer.subscribe(topic):
            got = await popped(consumer, len(SENT) + 2)
        (late,) = [message for message in got if message.body == b"late"]
        assert (late.priority, late.queue_id) == (None, 0)

    asyncio.run(story())


def _first_of(queue: aio.MessageQueue) -> aio.MessageQueue:
    return aio.MessageQueue(queue.topic, queue.broker_name, 0)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ("+cleanup.policy=COMPACTION", "COMPACTION cleanup policy is not supported"),
        ("+message.type=LITE", "LITE message type is not supported"),
        ("+message.type=MIXED", "MIXED message type is not supported"),
    ],
)
def test_mqadmin_tells_what_our_broker_lacks(
    jars: Jars, tmp_path: Path, ours: Cluster, attributes: str, words: str
) -> None:
    with Admin(jars, tmp_path) as admin:
        options = f"-c DefaultCluster -t lacking -a {attributes}"
        said = admin.run(f"updateTopic -n {ours.address} {options}")
        assert "CODE: 29" in said, said
        assert words in said, said
