"""Our POP consumer on Java brokers: what is taken, acknowledged, hidden for longer, comes back."""

import asyncio
from collections.abc import Iterator

import pytest

from pocketmq.client.pop.consumer import PopConsumer
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.errors import RequestNotSupported
from pocketmq.model import ConsumeFromWhere, Message, MessageRequestMode
from pocketmq.protocol import ReceivedMessage, RequestCode, encode_body
from pocketmq.protocol.requests.assignment import RequestMode
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import PATIENCE, Jars
from tests.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


@pytest.fixture(scope="module")
def brokers(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    home = tmp_path_factory.mktemp("java")
    with java_brokers(jars, home, "java-0", "java-1") as running:
        yield running


@pytest.mark.line("4.x")
def test_brokers_of_4_x_refuse(brokers: JavaBroker) -> None:
    brokers.create_topic("unpopped", 1)

    async def story() -> None:
        async with PopConsumer(brokers.address, group="poppers").subscribe("unpopped") as consumer:
            with pytest.raises(RequestNotSupported, match="POP_MESSAGE"):
                await consumer.receive()

    asyncio.run(story())


async def send(
    brokers: JavaBroker, topic: str, count: int, ordering_key: str | None = None
) -> list[bytes]:
    bodies = [b"%s %d" % (topic.encode(), n) for n in range(count)]
    async with Producer(brokers.address, group="senders") as producer:
        for n, body in enumerate(bodies):
            tag = "even" if n % 2 == 0 else "odd"
            await producer.send(Message(topic, body, tag=tag), ordering_key=ordering_key)
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


@pytest.mark.line("5.x")
def test_what_is_not_acknowledged_comes_back_and_the_rest_does_not(brokers: JavaBroker) -> None:
    brokers.create_topic("popped", 2)

    async def story() -> None:
        sent = await send(brokers, "popped", 20)
        consumer = PopConsumer(brokers.address, group="poppers", consume_from=FIRST, invisible=5.0)
        async with consumer.subscribe("popped"):
            got = await receive(consumer, 20)
            assert bodies(got) == sorted(sent)
            assert {m.broker_name for m in got} == {"java-0", "java-1"}
            await consumer.ack(got[0])
            await consumer.ack(got[1:15])
            longer = await consumer.change_invisible(got[15], 60)
            assert await consumer.receive(timeout=0.1) == []
            back = await receive(consumer, 4)
            assert bodies(back) == bodies(got[16:])
            assert {(m.reconsume_times, m.topic) for m in back} == {(1, "popped")}
            await consumer.ack(back)
            await consumer.ack(longer)
            soon = await consumer.receive(timeout=3)
            assert soon == []

    asyncio.run(story())


@pytest.mark.line("5.x")
def test_a_message_can_be_given_back_at_once(brokers: JavaBroker) -> None:
    brokers.create_topic("returned", 1)

    async def story() -> None:
        await send(brokers, "returned", 1)
        consumer = PopConsumer(
            brokers.address, group="returners", consume_from=FIRST, invisible=300
        )
        async with consumer.subscribe("returned"):
            (message,) = await receive(consumer, 1)
            await consumer.change_invisible(message, 1)
            (again,) = await receive(consumer, 1)
            assert (again.body, again.reconsume_times) == (message.body, 1)
            await consumer.ack(again)

    asyncio.run(story())


@pytest.mark.line("5.x")
def test_a_waiting_receiver_gets_what_comes_on_any_broker(brokers: JavaBroker) -> None:
    brokers.create_topic("awaited", 1)

    async def story() -> None:
        async with PopConsumer(brokers.address, group="waiters").subscribe("awaited") as consumer:
            assert await consumer.receive(timeout=0.2) == []
            waiting = asyncio.ensure_future(consumer.receive(timeout=PATIENCE))
            await asyncio.sleep(0.5)  # time in which an answer would come, were it not waiting
            assert not waiting.done()
            sent = await send(brokers, "awaited", 1)
            got = await waiting
            assert bodies(got) == sent
            await consumer.ack(got)

    asyncio.run(story())


@pytest.mark.line("5.x")
def test_tags_choose_messages(brokers: JavaBroker) -> None:
    brokers.create_topic("tagged", 1)

    async def story() -> None:
        await send(brokers, "tagged", 10)
        consumer = PopConsumer(brokers.address, group="taggers", consume_from=FIRST)
        async with consumer.subscribe("tagged", "odd"):
            got = await receive(consumer, 5)
            assert {m.tag for m in got} == {"odd"}
            assert len(got) == 5
            await consumer.ack(got)

    asyncio.run(story())


@pytest.mark.line("5.x")
def test_ordered_messages_wait_for_those_before_them(brokers: JavaBroker) -> None:
    """A queue gives nothing more before what it gave is acknowledged; then it goes on in order."""
    brokers.create_topic("in-order", 1)

    async def story() -> None:
        sent = await send(brokers, "in-order", 6, ordering_key="one")
        consumer = PopConsumer(
            brokers.address, group="orderers", consume_from=FIRST, ordered=True, invisible=5.0
        )
        async with consumer.subscribe("in-order"):
            first = await consumer.receive(2)
            assert [m.body for m in first] == sent[:2]
            assert await consumer.receive(2, timeout=0.5) == []
            async with asyncio.timeout(PATIENCE):
                while not (again := await consumer.receive(2)):
                    pass
            assert [m.body for m in again] == sent[:2]
            assert [m.reconsume_times for m in again] == [1, 1]
            await consumer.ack(again)
            rest = await receive(consumer, 4)
            assert [m.body for m in rest] == sent[2:]
            await consumer.ack(rest)

    asyncio.run(story())


@pytest.mark.line("5.x")
def test_a_push_consumer_pops_where_the_broker_says_so(brokers: JavaBroker) -> None:
    """What a handler does not finish comes again, what it finishes does not."""
    brokers.create_topic("pushed", 2)
    mode = RequestMode(
        topic="pushed", consumer_group="pushers", mode=MessageRequestMode.POP, pop_share_queue_num=0
    )
    for address in brokers.brokers.values():
        with WireClient(address) as client:
            answer = client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, body=encode_body(mode))
            assert answer.code == 0, answer.remark

    async def story() -> None:
        tries: dict[bytes, list[int]] = {}
        all_done = asyncio.Event()

        async def handle(message: ReceivedMessage) -> None:
            tries.setdefault(message.body, []).append(message.reconsume_times)
            if sum(map(len, tries.values())) == 22:
                all_done.set()
            if message.body.endswith(b"3") and message.reconsume_times == 0:
                raise ZeroDivisionError

        consumer = PushConsumer(
            brokers.address, group="pushers", consume_from=FIRST, client_rebalance=False
        )
        consumer.subscribe("pushed", "*", handle)
        async with consumer:
            sent = await send(brokers, "pushed", 20)
            failing = {body for body in sent if body.endswith(b"3")}
            async with asyncio.timeout(PATIENCE):
                await all_done.wait()
            assert tries == {body: [0, 1] if body in failing else [0] for body in sent}
            queues = consumer.assignment()["pushed"]
            assert {(queue.broker_name, queue.queue_id) for queue in queues} == {
                ("java-0", -1),
                ("java-1", -1),
            }
        async with PopConsumer(brokers.address, group="pushers").subscribe("pushed") as other:
            assert await other.receive(timeout=3) == []

    asyncio.run(story())
