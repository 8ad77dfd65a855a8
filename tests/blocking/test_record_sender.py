"""The producer for pipelines: batches encoded elsewhere, half messages that end elsewhere."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pocketmq import Cluster, ConsumeFromWhere, Message, PullConsumer
from pocketmq.blocking.record_sender import HalfMessage, RecordSender
from pocketmq.errors import QueueNotSelected, SendFailed
from pocketmq.model import MessageQueue, TransactionState
from pocketmq.protocol.batch import encode_messages

COMMIT, ROLLBACK = TransactionState.COMMIT, TransactionState.ROLLBACK


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


def test_half_messages_end_as_they_are_told_and_are_counted(
    cluster: Cluster, sender: RecordSender
) -> None:
    topic = cluster.create_topic("halves", 1)
    ids = sender.take_ids(3)
    halves = []
    for at, body in enumerate((b"kept", b"dropped", b"kept, too")):
        name = f"{ids.prefix}{ids.first + at:04X}"
        receipt = sender.submit_half(Message(topic, body), name).result(10)
        assert receipt.message_id == name
        halves.append(HalfMessage.of(receipt))
    assert [half.message_id for half in halves] == sorted({half.message_id for half in halves})
    with RecordSender(cluster.address, group="pipeline", instance_name="another") as other:
        assert other.end_halves([halves[0], halves[2]], COMMIT) == 2
    assert sender.end_halves([halves[1]], ROLLBACK) == 1
    assert sender.end_halves([halves[0]], COMMIT) == 1, "said again; nothing happens twice"
    assert sender.end_halves(halves, ROLLBACK) == 1, "the others have ended otherwise"
    assert sender.ends_once(halves[0])
    lost = HalfMessage("broker-9", topic, 0, 0, "x")
    assert not sender.ends_once(lost)
    assert sender.end_halves([lost], COMMIT) == 0, "nobody knows where that is"
    assert read(cluster, topic, 2) == [b"kept", b"kept, too"]
