"""Messages that share batches on Java's broker: each is stored where its receipt says."""

import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import pocketmq as mq
from pocketmq.errors import SendFailed
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import Jars

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

COUNT = 3000
LARGEST = 20_000


@pytest.fixture(scope="module")
def java(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    home = tmp_path_factory.mktemp("java")
    with java_brokers(jars, home, "java-a", maxMessageSize=LARGEST) as running:
        yield running


def read(address: str, topic: str, count: int) -> dict[tuple[int, int], mq.ReceivedMessage]:
    """Read a topic; return its messages by queue and offset."""
    found: dict[tuple[int, int], mq.ReceivedMessage] = {}
    deadline = time.monotonic() + 60
    with mq.PullConsumer(address, group=f"read-{topic}", consume_from="first") as consumer:
        consumer.subscribe(topic)
        while len(found) < count and time.monotonic() < deadline:
            for each in consumer.poll(1.0):
                found[each.queue_id, each.queue_offset] = each
    return found


def check(
    found: dict[tuple[int, int], mq.ReceivedMessage], sent: bytes, receipt: mq.SendReceipt
) -> None:
    stored = found[receipt.queue.queue_id, receipt.queue_offset]
    assert stored.body == sent
    assert stored.properties["UNIQ_KEY"] == receipt.message_id
    assert stored.offset_message_id == receipt.offset_message_id


def test_submitted_messages_are_stored_where_their_receipts_say(java: JavaBroker) -> None:
    topic = "shared-submits"
    java.create_topic(topic, 4)
    with mq.Producer(java.address, group="shop", batch_bytes=16_000) as producer:
        producer.send(mq.Message(topic, b"first"))
        futures = [
            producer.submit(
                mq.Message(topic, b"%05d" % n, tag="even" if n % 2 == 0 else None, keys=[f"K{n}"])
                if n % 3 == 0
                else mq.Message(topic, b"%05d" % n)
            )
            for n in range(COUNT)
        ]
        producer.flush()
        assert all(future.done() for future in futures)
        receipts = [future.result() for future in futures]
    found = read(java.address, topic, COUNT + 1)
    assert len(found) == COUNT + 1
    for n, receipt in enumerate(receipts):
        check(found, b"%05d" % n, receipt)
    assert len({receipt.message_id for receipt in receipts}) == COUNT
    tagged = [each for each in found.values() if each.tag == "even"]
    assert len(tagged) == COUNT // 6


def test_keyed_messages_keep_their_order(java: JavaBroker) -> None:
    topic = "shared-keys"
    java.create_topic(topic, 4)
    with mq.Producer(java.address, group="shop", batch_bytes=16_000) as producer:
        producer.send(mq.Message(topic, b"first"))
        futures = [
            producer.submit(mq.Message(topic, b"%05d" % n), ordering_key=f"customer-{n % 7}")
            for n in range(COUNT)
        ]
        receipts = [future.result(60) for future in futures]
    found = read(java.address, topic, COUNT + 1)
    by_key: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for n, receipt in enumerate(receipts):
        check(found, b"%05d" % n, receipt)
        by_key[n % 7].append((receipt.queue.queue_id, receipt.queue_offset))
    for places in by_key.values():
        assert len({queue for queue, _ in places}) == 1
        assert places == sorted(places)


def test_a_message_that_java_refuses_harms_no_other(java: JavaBroker) -> None:
    """Java refuses a batch above its own maxMessageSize as a whole."""
    topic = "shared-refusals"
    java.create_topic(topic, 4)
    with mq.Producer(java.address, group="shop", compress_from=10**9) as producer:
        producer.send(mq.Message(topic, b"first"))
        bodies = [b"%05d" % n for n in range(40)]
        bodies[20] = b"x" * (LARGEST + 5000)
        futures = [producer.submit(mq.Message(topic, body)) for body in bodies]
        errors = [future.exception(60) for future in futures]
        assert [n for n, error in enumerate(errors) if error is not None] == [20]
        assert isinstance(errors[20], SendFailed)
        receipts = [future.result() for n, future in enumerate(futures) if n != 20]
    found = read(java.address, topic, len(receipts) + 1)
    for body, receipt in zip([*bodies[:20], *bodies[21:]], receipts, strict=True):
        check(found, body, receipt)


def test_sends_that_share_have_receipts_of_their_own(java: JavaBroker) -> None:
    topic = "shared-sends"
    java.create_topic(topic, 4)
    with mq.Producer(java.address, group="shop", linger=0.005, batch_bytes=16_000) as producer:
        producer.send(mq.Message(topic, b"first"))
        with ThreadPoolExecutor(32) as threads:
            receipts = list(
                threads.map(lambda n: producer.send(mq.Message(topic, b"%05d" % n)), range(640))
            )
    found = read(java.address, topic, 641)
    for n, receipt in enumerate(receipts):
        check(found, b"%05d" % n, receipt)
