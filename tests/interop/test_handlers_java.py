"""Our push consumer's handlers on a Java broker: retries, dead letters, and what mqadmin shows."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.client.push.handlers import Consumed
from pocketmq.model import ConsumeFromWhere, Message
from pocketmq.protocol import ReceivedMessage
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import PATIENCE, Admin, Jars
from tests.loops import until

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
LEVELS = " ".join(["1s"] * 18)


@pytest.fixture(scope="module")
def brokers(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    home = tmp_path_factory.mktemp("java")
    with java_brokers(jars, home, "java-0", messageDelayLevel=LEVELS) as running:
        yield running


def consumer(brokers: JavaBroker, group: str, **settings: Any) -> PushConsumer:
    return PushConsumer(
        brokers.address, group=group, consume_from=FIRST, route_interval=0.2, **settings
    )


async def dead_letters(brokers: JavaBroker, group: str) -> list[ReceivedMessage]:
    """Wait for the first dead letter of a group."""
    got: list[ReceivedMessage] = []
    reader = consumer(brokers, f"{group}_readers")
    reader.subscribe(f"%DLQ%{group}", "*", got.append)
    async with reader:
        await until(lambda: got, "a dead letter", PATIENCE)
    return got


def plain(do: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return do


def coroutine(do: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def handler(given: Any) -> Any:
        await asyncio.sleep(0)
        return do(given)

    return handler


@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("kind", [plain, coroutine])
def test_a_failing_message_ends_as_a_dead_letter(
    brokers: JavaBroker, kind: Any, orderly: bool
) -> None:
    topic = f"failing_{kind.__name__}_{orderly}"
    brokers.create_topic(topic, 1)
    seen: Counter[tuple[bytes, int]] = Counter()

    def handler(message: ReceivedMessage) -> Consumed | None:
        assert message.topic == topic
        seen[message.body, message.reconsume_times] += 1
        if message.body == b"1":
            raise ValueError("never")
        return Consumed.RETRY if message.body == b"2" and message.reconsume_times == 0 else None

    async def story() -> None:
        one = consumer(brokers, topic, orderly=orderly, max_reconsume_times=2)
        one.subscribe(topic, "*", kind(handler))
        async with one, Producer(brokers.address, group="senders") as producer:
            for number in range(4):
                await producer.send(Message(topic, b"%d" % number))
            (dead,) = await dead_letters(brokers, topic)
            assert (dead.body, dead.get_property("RETRY_TOPIC")) == (b"1", topic)
            await until(lambda: (b"3", 0) in seen, "those behind it")

    asyncio.run(story())
    tries = [(b"1", 0), (b"1", 1), (b"1", 2), (b"2", 0), (b"2", 1)]
    assert seen == Counter([(b"0", 0), *tries, (b"3", 0)])


def test_mqadmin_shows_a_consumer_and_has_it_handle_a_message(
    brokers: JavaBroker, jars: Jars, tmp_path: Path
) -> None:
    brokers.create_topic("shown", 2)
    topic = "-t shown" if jars.is_5 else ""
    seen: list[bytes] = []

    def stuck_or_not(message: ReceivedMessage) -> None:
        seen.append(message.body)
        if seen.count(message.body) == 3:
            raise ValueError("enough")

    async def story() -> None:
        one = consumer(brokers, "shown_group", instance_name="shown-1", client_ip="10.0.0.1")
        one.subscribe("shown", "*", stuck_or_not)
        async with one, Producer(brokers.address, group="senders") as producer:
            receipt = await producer.send(Message("shown", b"hello", keys=["K1"]))
            await until(lambda: seen, "the message", PATIENCE)
            await one.commit()
            client = one.session.client_id

            def ask(command: str) -> str:
                return admin.run(f"{command} -n {brokers.address}")

            with Admin(jars, tmp_path) as admin:
                status = await asyncio.to_thread(ask, "consumerStatus -g shown_group -s")
                detail = await asyncio.to_thread(
                    ask, f"consumerStatus -g shown_group -i {client} -s"
                )
                again = [
                    await asyncio.to_thread(
                        ask,
                        f"queryMsgById {topic} -i {receipt.offset_message_id} "
                        f"-g shown_group -d {client}",
                    )
                    for _ in range(2)
                ]

        assert client in status
        assert "Same subscription in the same group of consumer" in status
        assert "#Consumer Properties#" in detail
        assert "MainThread" in detail
        assert "PROP_CONSUMER_START_TIMESTAMP" in detail
        assert "shown" in detail
        assert "consumeResult=CR_SUCCESS" in again[0]
        assert "consumeResult=CR_THROW_EXCEPTION" in again[1]
        assert "handler raised ValueError: enough" in again[1]

    asyncio.run(story())
    assert seen == [b"hello"] * 3
