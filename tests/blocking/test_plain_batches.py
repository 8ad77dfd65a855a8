"""Batches of a blocking producer: the short way stores and refuses what the ordinary one does."""

from collections import UserDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pocketmq as mq
from pocketmq import Cluster, Message
from pocketmq.errors import InvalidInput
from pocketmq.protocol import ReceivedMessage

# What a producer is told by its options: with hooks or signatures there is no short way.
ORDINARY: dict[str, Any] = {"credentials": mq.Credentials(access_key="user", secret_key="secret")}


@contextmanager
def warm(cluster: Cluster, topic: str, **options: Any) -> Iterator[mq.Producer]:
    """A producer that has sent to every broker, and knows their versions."""
    with mq.Producer(cluster.address, group="shop", **options, send_timeout=30.0) as producer:
        for queue in producer.queues(topic):
            producer.send(Message(topic, b"warm"), queue=queue)
        publishing = producer._running().sending._on_loop.publishing
        publication = publishing.ready(topic)
        assert publication is not None
        while not publishing.knows_batch_ids(publication):
            producer.send(Message(topic, b"warm"))  # versions come with the heartbeats' responses
        yield producer


def is_short(producer: mq.Producer, messages: list[Message]) -> bool:
    """Send a batch the short way, if there is one for it."""
    return producer._running().sending.send_plain_batch(messages) is not None


def batches(cluster: Cluster, topic: str) -> list[ReceivedMessage]:
    found: list[ReceivedMessage] = []
    with mq.PullConsumer(
        cluster.address, request_timeout=30.0, group="reader", auto_commit=False
    ) as consumer:
        consumer.assign(consumer.queues(topic))
        for queue in consumer.queues(topic):
            consumer.seek_to_begin(queue)
        while sum(message.body == b"last" for message in found) < len(consumer.queues(topic)):
            found += consumer.poll(10)
    return [message for message in found if message.body.startswith(b"of a batch")]


def close_off(producer: mq.Producer, topic: str) -> None:
    for queue in producer.queues(topic):
        producer.send(Message(topic, b"last"), queue=queue)


def test_both_ways_store_the_same(cluster: Cluster, topic: str) -> None:
    batch = [
        Message(topic, b"of a batch 0"),
        Message(topic, b"of a batch 1", tag="paid"),
        Message(topic, b"of a batch 2", keys=("a", "b"), properties={"region": "ä"}, flag=7),
    ]
    with warm(cluster, topic) as producer:
        short = [producer.send_batch(batch) for _ in range(8)]
        assert is_short(producer, batch)
        queues = producer.queues(topic)
        assert sorted(map(str, queues)) == sorted(str(each.queue) for each in short)
        ordinary = producer.send_batch(batch, queue=queues[0])
        close_off(producer, topic)
    for receipt in short:
        assert receipt.ok
        assert receipt.message_id.count(",") == ordinary.message_id.count(",")
        assert (receipt.offset_message_id or "").count(",") == 2
        assert len(receipt.transaction_id or "") == len(ordinary.transaction_id or "")
    stored = batches(cluster, topic)
    assert len(stored) == 30
    assert len({message.message_id for message in stored}) == 30
    for number, sent in enumerate(batch):
        alike = [each for each in stored if each.body == sent.body]
        assert len(alike) == 10, number
        facts = {
            (each.tag, tuple(each.keys), each.flag, tuple(sorted(each.properties)))
            for each in alike
        }
        assert len(facts) == 1, number
        assert alike[0].tag == sent.tag
        assert alike[0].keys == list(sent.keys)
        assert alike[0].flag == sent.flag


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda topic: [], "at least one message"),
        (lambda topic: [Message(topic, b"x"), Message("other", b"x")], "same topic"),
        (lambda topic: [Message(topic, b"x"), Message(topic, b"")], "no body"),
        (lambda topic: [Message(topic, b"x"), Message(topic, b"x", priority=3)], "priorit"),
        (lambda topic: [Message(topic, b"x"), "text"], "a list of Message"),
        (lambda topic: [Message(topic, b"x" * 3_000_000)] * 2, "over the limit"),
    ],
)
def test_both_ways_refuse_the_same(cluster: Cluster, topic: str, wrong: Any, text: str) -> None:
    with warm(cluster, topic) as producer:
        assert is_short(producer, [Message(topic, b"x")])
        with pytest.raises(InvalidInput, match=text):
            producer.send_batch(wrong(topic))
        assert producer.send_batch([Message(topic, b"x")] * 2).ok


def test_a_batch_that_a_dead_broker_did_not_store_goes_to_another() -> None:
    with Cluster(brokers=2, in_process=False) as cluster:
        topic = cluster.create_topic("t", queues=1)
        with warm(cluster, topic) as producer:
            batch = [Message(topic, b"x"), Message(topic, b"y")]
            assert is_short(producer, batch)
            cluster.kill("broker-1")
            receipts = [producer.send_batch(batch) for _ in range(4)]
            assert {receipt.queue.broker_name for receipt in receipts} == {"broker-0"}
            assert len({receipt.message_id for receipt in receipts}) == 4


class Interrupting(UserDict[str, str]):
    """Properties whose reading is interrupted, once that is wanted."""

    armed = False

    def __getitem__(self, name: str) -> str:
        if self.armed:
            raise KeyboardInterrupt
        return super().__getitem__(name)


def test_an_interrupt_while_a_batch_is_packed_costs_no_connection(
    cluster: Cluster, topic: str
) -> None:
    properties = Interrupting(region="eu")
    broken = [Message(topic, b"x"), Message(topic, b"x", properties=properties)]
    with warm(cluster, topic) as producer:
        pool = producer._running().sending.exchange.connections
        for _ in range(2):
            assert is_short(producer, [Message(topic, b"x")])
            properties.armed = True
            with pytest.raises(KeyboardInterrupt):
                producer._running().sending.send_plain_batch(broken)
            assert len(pool) == sum(map(len, pool._idle.values()))  # none is taken for ever
            assert producer.send(Message(topic, b"x")).ok


def test_signed_batches_take_the_ordinary_way(cluster: Cluster, topic: str) -> None:
    with warm(cluster, topic, **ORDINARY) as producer:
        batch = [Message(topic, b"x"), Message(topic, b"y")]
        assert not is_short(producer, batch)
        assert producer.send_batch(batch).ok
