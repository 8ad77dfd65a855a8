"""The blocking clients and the commands on Java's broker."""

import subprocess
import threading
from collections.abc import Iterator

import pytest

import pocketmq as mq
from pocketmq import ConsumeFromWhere, Message, ReceivedMessage
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import Jars, wait_until
from tests.server_process import POCKETMQ

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


@pytest.fixture(scope="module")
def java(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    home = tmp_path_factory.mktemp("java")
    with java_brokers(jars, home, "java-a") as running:
        yield running


def test_every_way_to_send_arrives_at_handlers_and_polls(java: JavaBroker) -> None:
    java.create_topic("blocking", 4)
    handled: list[bytes] = []
    answered: list[bool] = []

    def handle(message: ReceivedMessage) -> None:
        handled.append(message.body)
        answered.append(producer.send(Message("blocking-answers", message.body)).ok)

    java.create_topic("blocking-answers", 1)
    with mq.Producer(java.address, group="shop") as producer:
        assert producer.send(Message("blocking", b"one", tag="paid", keys=["A17"])).ok
        assert producer.send(Message("blocking", b"two"), ordering_key="customer-7").ok
        assert producer.send_batch([Message("blocking", b"three"), Message("blocking", b"four")]).ok
        assert producer.submit(Message("blocking", b"five")).result(30).ok
        producer.send_oneway(Message("blocking", b"six"))
        other = threading.Thread(target=producer.send, args=(Message("blocking", b"more"),))
        other.start()
        other.join(30)
        consumer = mq.PushConsumer(java.address, group="billing", consume_from=FIRST)
        consumer.subscribe("blocking", handler=handle)
        with consumer:
            wait_until(lambda: len(answered) == 7, "all messages")
    assert sorted(handled) == sorted([b"one", b"two", b"three", b"four", b"five", b"six", b"more"])
    assert set(answered) == {True}
    with mq.PullConsumer(java.address, group="audit", consume_from=FIRST) as reader:
        reader.subscribe("blocking-answers")
        assert sorted(next(reader).body for _ in range(7)) == sorted(handled)


def test_lines_go_through_a_java_broker(java: JavaBroker) -> None:
    java.create_topic("lines", 2)
    where = ["-n", java.address, "-t", "lines"]
    sent = subprocess.run(
        [POCKETMQ, "produce", *where],
        input=b"a\nb\nc\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (sent.returncode, sent.stderr) == (0, b"")
    lines = []
    for count, way in ((1, ()), (2, ("--pull",))):
        read = subprocess.run(
            [
                *(str(POCKETMQ), "consume", *where, "--from", "first", "--timeout", "60"),
                *("--count", str(count), *way),
            ],
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert (read.returncode, read.stderr) == (0, b"")
        lines += read.stdout.splitlines()
    assert sorted(lines) == [b"a", b"b", b"c"]


@pytest.mark.line("5.x")  # brokers of 4.x know no POP
def test_messages_are_taken_and_acknowledged_by_pop(java: JavaBroker) -> None:
    java.create_topic("popped", 2)
    with mq.Producer(java.address, group="shop") as producer:
        producer.send(Message("popped", b"x"))
    with mq.PopConsumer(java.address, group="pop", consume_from=FIRST) as consumer:
        consumer.subscribe("popped")
        (message,) = consumer.receive(timeout=60)
        assert message.body == b"x"
        consumer.ack(consumer.change_invisible(message, 30.0))
        assert consumer.receive(timeout=0.5) == []
