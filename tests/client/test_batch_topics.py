"""Our clients with a topic of `queue.type=BatchCQ` on our broker: every way in, every way out."""

from collections.abc import Iterator

import pytest

import pocketmq as mq
from pocketmq.embedded import Cluster
from tests import batch_topics


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


def test_a_batch_is_sent_and_pulled_from_any_offset(cluster: Cluster) -> None:
    batch_topics.send_and_pull(cluster.address)


def test_messages_of_batches_are_found(cluster: Cluster) -> None:
    batch_topics.find(cluster.address)


def test_a_message_of_a_batch_is_retried_alone(cluster: Cluster) -> None:
    batch_topics.push_and_retry(cluster.address)


def test_messages_of_batches_are_popped_and_acknowledged(cluster: Cluster) -> None:
    batch_topics.pop_and_acknowledge(cluster.address, in_order=True)


def test_messages_that_share_batches_have_offsets_of_their_own(cluster: Cluster) -> None:
    topic = "our-shared"
    batch_topics.make_topic(cluster.address, topic)
    with mq.Producer(cluster.address, group="shared", linger=0.05) as producer:
        producer.send_batch([mq.Message("first-batches", b"x")] * 2)  # waits for brokers' versions
        futures = [producer.submit(mq.Message(topic, b"%d" % number)) for number in range(50)]
        producer.flush()
        receipts = [future.result() for future in futures]
    assert sorted(each.queue_offset for each in receipts) == list(range(50))
    with mq.Admin(cluster.address) as admin:
        for number, receipt in enumerate(receipts):
            found = admin.messages.by_offset(receipt.queue, receipt.queue_offset)
            assert (found.body, found.message_id) == (b"%d" % number, receipt.message_id)
