"""Blocking producers and consumers follow the queues of a static topic."""

from collections.abc import Iterator

import pytest

import pocketmq as mq
from pocketmq.model.topics import is_logical
from tests.server_process import wait_for

BLOCK = 10_000


@pytest.fixture
def cluster() -> Iterator[mq.Cluster]:
    with mq.Cluster(brokers=2) as running:
        yield running


@pytest.mark.parametrize("settings", [{}, {"queue_choice": "adaptive"}, {"linger": 0.01}])
def test_every_way_to_send_follows_a_queue(
    cluster: mq.Cluster, settings: dict[str, object]
) -> None:
    with (
        mq.Admin(cluster.address) as admin,
        mq.Producer(cluster.address, group="shop", **settings, send_timeout=30.0) as producer,  # type: ignore[arg-type]
    ):
        admin.static_topics.create("fixed", 1, ["broker-0"])
        assert producer.send(mq.Message("fixed", b"0")).queue_offset == 0
        for start, broker in ((BLOCK, "broker-1"), (2 * BLOCK, "broker-0")):
            admin.static_topics.move("fixed", [broker])
            first = producer.send(mq.Message("fixed", b"1"))
            assert is_logical(first.queue)
            assert first.queue_offset == start
        admin.static_topics.move("fixed", ["broker-1"])
        batch = producer.send_batch([mq.Message("fixed", b"a"), mq.Message("fixed", b"b")])
        assert batch.queue_offset == 3 * BLOCK
        admin.static_topics.move("fixed", ["broker-0"])
        sent = [producer.submit(mq.Message("fixed", b"%d" % number)) for number in range(20)]
        offsets = [each.result(10).queue_offset for each in sent]
        assert min(offsets) >= 4 * BLOCK
        admin.static_topics.move("fixed", ["broker-1"])
        assert producer.send(mq.Message("fixed", b"k"), ordering_key="k").queue_offset == 5 * BLOCK
        queue = first.queue
        assert admin.offsets.bounds(queue) == (0, 5 * BLOCK + 1)


def test_a_pull_consumer_reads_all_generations(cluster: mq.Cluster) -> None:
    with (
        mq.Admin(cluster.address) as admin,
        mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer,
    ):
        admin.static_topics.create("fixed", 2, ["broker-0"])
        for number in range(4):
            producer.send(mq.Message("fixed", b"%d" % number))
        admin.static_topics.move("fixed", ["broker-1"])
        for number in range(4, 8):
            producer.send(mq.Message("fixed", b"%d" % number))
        consumer = mq.PullConsumer(cluster.address, group="audit", consume_from="first")
        got: list[bytes] = []
        with consumer.subscribe("fixed"):
            while len(got) < 8:
                got += [message.body for message in consumer.poll(timeout=5.0)]
            consumer.commit()
        assert sorted(got) == [b"%d" % number for number in range(8)]
        progress = admin.groups.progress("audit", "fixed")
        assert progress.lag == 0


def test_sticky_members_do_without_handing_over(
    cluster: mq.Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        mq.Admin(cluster.address) as admin,
        mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer,
    ):
        admin.static_topics.create("fixed", 2, ["broker-0", "broker-1"])
        got: list[bytes] = []
        consumer = mq.PushConsumer(
            cluster.address, group="billing", strategy="STICKY", consume_from="first"
        )
        consumer.subscribe("fixed", "*", lambda message: got.append(message.body))
        with consumer:
            for number in range(4):
                producer.send(mq.Message("fixed", b"%d" % number))
            wait_for(lambda: len(got) == 4, "all messages")
        assert "topic fixed is static" in caplog.text
