"""The producer for pipelines: batches encoded elsewhere."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pocketmq import Cluster, ConsumeFromWhere, Message, PullConsumer
from pocketmq.blocking.record_sender import RecordSender
from pocketmq.errors import QueueNotSelected, SendFailed
from pocketmq.model import MessageQueue
from pocketmq.protocol.batch import encode_messages


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture
def sender(cluster: Cluster) -> Iterator[RecordSender]:
    with RecordSender(cluster.address, group="pipeline") as running:
        yield running


def packed(sender: RecordSender, topic: str, *bodies: bytes) -> bytes:
    ids = sender.take_ids(len(bodies))
    names = [f"{ids.prefix}{ids.first + at & 0xFFFF:04X}" for at in range(len(bodies))]
    return b"".join(encode_messages([Message(topic, body) for body in bodies], names))


def read(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    with PullConsumer(cluster.address, group=f"of-{topic}", consume_from=first) as consumer:
        consumer.subscribe(topic)
        return sorted(next(consumer).body for _ in range(count))


def test_a_batch_that_is_encoded_goes_as_one(cluster: Cluster, sender: RecordSender) -> None:
    topic = cluster.create_topic("packed", 4)
    queue = MessageQueue(topic, "broker-0", 3)
    receipt = sender.send_packed(topic, packed(sender, topic, b"a", b"b"), queue=queue)
    assert (receipt.ok, receipt.queue, receipt.queue_offset) == (True, queue, 0)
    assert sender.send_packed(topic, packed(sender, topic, b"c")).ok
    assert read(cluster, topic, 3) == [b"a", b"b", b"c"]
    with pytest.raises(QueueNotSelected):
        sender.send_packed(topic, b"-", queue=MessageQueue(topic, "broker-9", 0))
    with pytest.raises(SendFailed):
        sender.send_packed(topic, b"this is no batch of messages, whatever a broker may think")


def test_ids_are_taken_by_one_only(sender: RecordSender) -> None:
    def take(_: int) -> set[str]:
        ids = sender.take_ids(50)
        return {f"{ids.prefix}{ids.first + at & 0xFFFF:04X}" for at in range(50)}

    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(take, range(100)))
    assert len(set.union(*taken)) == 5000
