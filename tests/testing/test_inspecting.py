"""What tests can ask of a cluster: the messages of a topic, and a fresh start."""

import asyncio
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

import pocketmq as mq
from pocketmq.embedded import aio
from pocketmq.errors import InvalidInput
from pocketmq.protocol import ReceivedMessage
from pocketmq.testing.external import ExternalCluster


@pytest.fixture(scope="module", params=["embedded", "external"])
def cluster(request: pytest.FixtureRequest) -> Iterator[mq.Cluster | ExternalCluster]:
    with mq.Cluster(brokers=2) as running:
        if request.param == "embedded":
            yield running
        else:
            external = ExternalCluster(running.address)
            yield external
            external.reset()
            assert not [name for name in topics(running.address) if name.startswith("asked")]


def topics(address: str) -> list[str]:
    with mq.Admin(address) as admin:
        return admin.topics.names()


def test_messages_are_read_as_they_were_stored(
    cluster: mq.Cluster | ExternalCluster, rocketmq_group: str
) -> None:
    topic = cluster.create_topic(f"asked-{rocketmq_group}", queues=2)
    assert cluster.messages(topic) == []
    with mq.Producer(cluster.address, group=rocketmq_group, send_timeout=30.0) as producer:
        for number in range(700):  # more than one answer holds
            producer.send(mq.Message(topic, b"%d" % number, tag="t", keys=[f"k{number}"]))
    found = cluster.messages(topic)
    assert sorted(int(message.body) for message in found) == list(range(700))
    assert {message.topic for message in found} == {topic}
    assert {message.tag for message in found} == {"t"}
    for place in {(message.broker_name, message.queue_id) for message in found}:
        bodies = [int(m.body) for m in found if (m.broker_name, m.queue_id) == place]
        assert bodies == sorted(bodies)


def test_a_topic_that_is_not_there_has_no_messages(cluster: mq.Cluster | ExternalCluster) -> None:
    assert cluster.messages("nowhere") == []


def test_messages_are_waited_for(
    cluster: mq.Cluster | ExternalCluster, rocketmq_group: str
) -> None:
    topic = cluster.create_topic(f"asked-later-{rocketmq_group}", queues=2)
    go_on = threading.Event()

    def send() -> None:
        with mq.Producer(cluster.address, group=rocketmq_group, send_timeout=30.0) as producer:
            producer.send(mq.Message(topic, b"1"))
            go_on.wait()
            producer.send(mq.Message(topic, b"2"))

    sending = threading.Thread(target=send)
    sending.start()
    try:
        assert [message.body for message in cluster.wait_for(topic, 1, 60.0)] == [b"1"]
        with pytest.raises(TimeoutError, match=r"has 1 of 2 messages after 0\.05 s"):
            cluster.wait_for(topic, 2, timeout=0.05)
        go_on.set()
        assert len(cluster.wait_for(topic, 2, 60.0)) == 2
    finally:
        go_on.set()
        sending.join()


def test_a_count_below_zero_is_refused(cluster: mq.Cluster | ExternalCluster) -> None:
    with pytest.raises(
        InvalidInput, match="count must be the number of messages to wait for, not -1"
    ):
        cluster.wait_for("orders", -1)


def finish(handled: threading.Event, _: ReceivedMessage) -> None:
    handled.set()


def test_a_reset_leaves_nothing_of_applications() -> None:
    with mq.Cluster(brokers=2) as cluster:
        before = set(topics(cluster.address))
        for _ in range(2):
            cluster.create_topic("orders", queues=2)
            handled = threading.Event()
            with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
                producer.send(mq.Message("orders", b"1"))
                with mq.PushConsumer(cluster.address, group="bill", consume_from="first") as member:
                    member.subscribe("orders", "*", partial(finish, handled))
                    assert handled.wait(60), "the group starts at its first message again"
            cluster.reset()
            assert set(topics(cluster.address)) == before
            with mq.Admin(cluster.address) as admin:
                assert not any("bill" in table for table in admin.groups.configs().all())


async def test_the_same_on_a_loop() -> None:
    async with aio.Cluster() as cluster:
        await cluster.create_topic("orders", queues=1)
        async with mq.aio.Producer(cluster.address, group="shop") as producer:
            waiting = asyncio.create_task(cluster.wait_for("orders", 1))
            await producer.send(mq.Message("orders", b"1"))
            assert [message.body for message in await waiting] == [b"1"]
        assert len(await cluster.messages("orders")) == 1
        began = time.monotonic()
        await cluster.reset()
        assert time.monotonic() - began < 20
        assert await cluster.messages("orders") == []
