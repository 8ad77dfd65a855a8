"""Observations from a running cluster: events from a topic through Spark, offsets from brokers."""

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import pocketmq as mq
from pocketmq.errors import InvalidInput
from pocketmq.model.rebalance_event import EventWriter, RebalanceChange, read_event
from pocketmq.pipelines.health import DeliveryRecord, Observations, OffsetSample, examine
from pocketmq.pipelines.health.by_group import examine_topics
from pocketmq.pipelines.health.observed import (
    BadLine,
    OffsetSampler,
    read_topics,
    watch_offsets,
)
from tests.own_time import own_time
from tests.pipelines.test_health import HANDED_OVER, JOIN, group

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_events_and_deliveries_are_read_from_topics(
    spark: "SparkSession", cluster: mq.Cluster, topic: str
) -> None:
    given = (
        b'{"time": 19.5, "group": "shop", "client_id": "%s", "topic": "orders", "broker": "b", '
        b'"queue": 0, "offset": 7}'
    )
    with mq.Producer(cluster.address, group="members", send_timeout=30.0) as producer:
        producer.send_batch([mq.Message(topic, event.to_json()) for event in JOIN])
        producer.send(mq.Message(topic, b"nonsense"))
        more = cluster.create_topic(f"{topic}-given", queues=1)
        producer.send(mq.Message(more, given % b"m1" + b"\n" + given % b"m2"))
    observed = read_topics(
        spark,
        Observations([]),
        name_server=cluster.address,
        topics={"events": topic, "deliveries": more},
    )
    assert sorted(e.started for e in observed.events) == sorted(e.started for e in JOIN)
    assert len(observed.bad) == 1
    assert observed.bad[0].where.startswith(f"{topic} broker-")
    [group] = examine(observed).groups
    assert (group.moved, group.minimum, group.deliveries, group.duplicates) == (4, 4, 2, 1)


def test_hand_overs_are_read_from_a_topic(
    spark: "SparkSession", cluster: mq.Cluster, topic: str
) -> None:
    with mq.Producer(cluster.address, group="members", send_timeout=30.0) as producer:
        producer.send_batch([mq.Message(topic, event.to_json()) for event in HANDED_OVER])
    observed = read_topics(
        spark, Observations([]), name_server=cluster.address, topics={"events": topic}
    )
    assert (len(observed.events), observed.bad) == (len(HANDED_OVER), [])
    [found] = examine(observed).groups
    assert found == group(*HANDED_OVER)
    assert (found.modes, found.figures.kinds) == (["sticky"], {"lost": 1, "overlap": 2})


def test_spark_examines_each_group_as_one_process_does_all(
    spark: "SparkSession", cluster: mq.Cluster, topic: str
) -> None:
    names = [f"group-{number}" for number in range(5)]
    events = [
        msgspec.structs.replace(event, group=name)
        for name in names
        for event in (*JOIN, msgspec.structs.replace(JOIN[0], topic=f"%RETRY%{name}"))
    ]
    delivery = DeliveryRecord(
        time=19.5, group=names[1], client_id="m1", topic="orders", broker="b", queue=0, offset=7
    )
    sample = OffsetSample(
        time=20.0, group=names[2], topic="orders", broker="b", queue=0, committed=3, highest=9
    )
    given = cluster.create_topic(f"{topic}-given", queues=1)
    writers: dict[tuple[str, str], EventWriter] = defaultdict(EventWriter)
    lines = [writers[event.group, event.client_id].written(event) for event in events]
    assert any(isinstance(read_event(line), RebalanceChange) for line in lines)
    late = RebalanceChange(follows=1.0, event=msgspec.structs.replace(JOIN[0], group="late"))
    with mq.Producer(cluster.address, group="members", send_timeout=30.0) as producer:
        producer.send_batch([mq.Message(topic, line) for line in lines])
        producer.send(mq.Message(topic, msgspec.json.encode(late)))
        producer.send(mq.Message(topic, b"nonsense\n\xff"))
        producer.send(mq.Message(given, msgspec.json.encode(delivery)))
    elsewhere = Observations([], [sample], bad=[BadLine("a file", "not JSON")])
    where: Any = {"name_server": cluster.address, "topics": {"events": topic, "deliveries": given}}
    alone = examine(read_topics(spark, elsewhere, **where))
    report = examine_topics(spark, elsewhere, **where)
    assert [group.group for group in report.groups] == names
    assert report.groups == alone.groups
    assert report.groups[1].deliveries == 1
    assert report.groups[2].lag is not None
    assert sorted(report.bad, key=str) == sorted(alone.bad, key=str)
    assert len(report.bad) == 4
    assert "follows the event at 1.0, which was not read" in {one.reason for one in report.bad}
    some = examine_topics(spark, elsewhere, groups=names[3:], **where)
    assert some.groups == alone.groups[3:]
    with pytest.raises(InvalidInput, match="no rebalance events of group other; 3 lines could not"):
        examine_topics(spark, elsewhere, groups=["other"], **where)


def test_offsets_are_sampled_from_the_brokers(cluster: mq.Cluster, topic: str) -> None:
    with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
        for _ in range(40):
            producer.send(mq.Message(topic, b"x"))
    group = f"{topic}-group"
    with OffsetSampler(cluster.address, [(group, topic), (group, "no-such-topic")]) as sampler:
        first = sampler.sample()
        assert sum(sample.lag for sample in first) == 40
        assert {(sample.broker, sample.queue) for sample in first} == {
            (broker, queue) for broker in ("broker-0", "broker-1") for queue in (0, 1)
        }
        with mq.PullConsumer(cluster.address, group=group, consume_from="first") as consumer:
            consumer.subscribe(topic)
            got = 0
            while got < 40:
                got += len(consumer.poll(10.0))
        assert sum(sample.lag for sample in sampler.sample()) == 0


def test_a_broker_that_does_not_respond_is_asked_once_in_a_sample() -> None:
    with mq.Cluster(brokers=2, faults=True) as cluster:
        topic = cluster.create_topic("orders", queues=8)
        with OffsetSampler(cluster.address, [("a", topic), ("b", topic)]) as sampler:
            assert len(sampler.sample()) == 32
            cluster.partition("broker-1")
            began = own_time()
            seen = sampler.sample()
            took = own_time() - began
    assert {(one.group, one.broker) for one in seen} == {("a", "broker-0"), ("b", "broker-0")}
    assert len(seen) == 16
    assert took < 20  # a request waits for 3 s: for each of its queues that were 48 s


def test_watching_takes_a_sample_at_once_and_one_at_the_end(
    cluster: mq.Cluster, topic: str
) -> None:
    """Even if the time is over when it goes on after the first."""
    rounds = list(watch_offsets(cluster.address, [("any", topic)], seconds=1e-9))
    assert len(rounds) == 2
    assert [len(samples) for samples in rounds] == [4, 4]
