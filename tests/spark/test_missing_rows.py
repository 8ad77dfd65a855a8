"""No row is missing without a word: real Spark, and brokers that are killed, or come back."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pocketmq import Admin, Cluster, Message, MessageQueue, Producer
from pocketmq.model import TopicConfig
from pocketmq.spark.lag_listener import LagListener, StreamSummary
from tests.server_process import ServerProcess
from tests.spark.test_source import PATIENCE, Collected, frame, run_to_end, stream
from tests.spark.topics import send

QUICK = {"retryTimeout": "500ms", "requestTimeout": "30s"}
"""A broker that was killed refuses at once; one that only has to wait for a processor is there."""


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Cluster]:
    """Yield two brokers with a topic of a queue each: 10 messages on the first, 7 on the second."""
    with Cluster(brokers=2, data=tmp_path / "data") as running:
        running.create_topic("orders", queues=1)
        send(running, "orders", range(10))
        with Producer(running.address, group="tests", send_timeout=30.0) as producer:
            messages = [Message("orders", b"%d" % n) for n in range(10, 17)]
            producer.send_batch(messages, queue=MessageQueue("orders", "broker-1", 0))
        yield running


def told(error: PySparkException) -> str:
    """Return what the user reads of an error: no traceback is part of it."""
    text = str(error)
    assert "Traceback" not in text
    assert 'File "' not in text
    return text


def test_a_batch_while_a_broker_is_down_is_an_error_not_a_part(
    spark: SparkSession, two: Cluster
) -> None:
    assert frame(spark, two, "orders").count() == 17
    two.kill("broker-1")
    with pytest.raises(PySparkException) as lost:
        frame(spark, two, "orders", **QUICK).count()
    assert "DataLost: messages of queue 0 of topic 'orders' on broker 'broker-1'" in told(
        lost.value
    )
    assert frame(spark, two, "orders", failOnDataLoss="false", **QUICK).count() == 10


def test_a_stream_waits_for_a_broker_and_ends_with_its_name_if_it_stays_away(
    spark: SparkSession, two: Cluster, tmp_path: Path
) -> None:
    got, checkpoint = Collected(), tmp_path / "checkpoint"
    options = {"startingOffsets": "earliest", "requestTimeout": "30s"}
    run_to_end(stream(spark, two, "orders", **options), got, checkpoint)
    two.kill("broker-1")
    send(two, "orders", ["meanwhile"])
    timer = threading.Timer(1.0, two.restart, ["broker-1"])
    timer.start()
    run_to_end(stream(spark, two, "orders", retryTimeout="60s", **options), got, checkpoint)
    timer.join()
    assert got.rows == sorted([*(str(n) for n in range(17)), "meanwhile"])
    two.kill("broker-1")
    send(two, "orders", ["later"])
    with pytest.raises(PySparkException, match=r"DataLost: .* on broker 'broker-1'") as lost:
        run_to_end(stream(spark, two, "orders", **QUICK), Collected(), checkpoint)
    assert "waited 0.5 s" in told(lost.value)
    lenient = stream(spark, two, "orders", failOnDataLoss="false", **QUICK)
    run_to_end(lenient, got, checkpoint)
    assert got.rows[-1] == "meanwhile"
    assert "later" in got.rows


def test_a_stream_waits_for_a_broker_that_is_shut_down_gracefully_and_back_after_4_s(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Such a broker takes its routes with it: only the checkpoint has its queue then."""
    got, checkpoint = Collected(), tmp_path / "checkpoint"
    place = MessageQueue("orders", "broker-1", 0)
    options = {"startingOffsets": "earliest", "retryTimeout": "60s"}
    with Cluster() as one, ExitStack() as back:
        words = ["-n", one.address, "--name", "broker-1", "--port", "0", "--data", f"{tmp_path}/1"]
        with ServerProcess("broker", *words) as broker:
            with (
                Admin(one.address) as admin,
                Producer(one.address, group="tests", send_timeout=30.0) as producer,
            ):
                config = TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1)
                admin.topics.create(config, cluster="DefaultCluster").all()
                producer.send(Message("orders", b"read"), queue=place)
                run_to_end(stream(spark, one, "orders", **options), got, checkpoint)
                producer.send(Message("orders", b"unread"), queue=place)
            assert broker.stop() == 0
        send(one, "orders", ["meanwhile"])
        timer = threading.Timer(4.0, lambda: back.enter_context(ServerProcess("broker", *words)))
        timer.start()
        run_to_end(stream(spark, one, "orders", **options), got, checkpoint)
        timer.join()
    assert got.rows == ["meanwhile", "read", "unread"]


def test_a_recreated_topic_is_not_taken_for_the_old_one(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    send(cluster, topic, ["old 0", "old 1"])
    got = Collected()
    run_to_end(stream(spark, cluster, topic, startingOffsets="earliest"), got, tmp_path)
    with Admin(cluster.address) as admin:
        admin.topics.delete(topic, *admin.topics.clusters(topic))
    cluster.create_topic(topic, queues=2)
    send(cluster, topic, ["new 0", "new 1", "new 2"])
    with pytest.raises(PySparkException, match=r"DataLost: .* it was recreated") as lost:
        run_to_end(stream(spark, cluster, topic, **QUICK), Collected(), tmp_path)
    told(lost.value)
    run_to_end(stream(spark, cluster, topic, failOnDataLoss="false", **QUICK), got, tmp_path)
    assert got.rows == ["new 0", "new 1", "new 2", "old 0", "old 1"]


def test_a_restart_with_fewer_topics_says_so_at_once(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    other = cluster.create_topic(f"{topic}-more", queues=1)
    both = stream(spark, cluster, f"{topic},{other}", startingOffsets="earliest")
    run_to_end(both, Collected(), tmp_path)
    send(cluster, topic, ["a"])
    with pytest.raises(PySparkException, match="is not selected any more by the options") as lost:
        run_to_end(stream(spark, cluster, topic, retryTimeout="1d"), Collected(), tmp_path)
    assert other in told(lost.value)
    got = Collected()
    fewer = stream(spark, cluster, topic, retryTimeout="1d", failOnDataLoss="false")
    run_to_end(fewer, got, tmp_path)
    assert got.rows == ["a"]


def test_a_cold_queue_is_read_beside_a_hot_one(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    send(cluster, topic, ["hot"] * 2000)
    send(cluster, topic, ["cold"], queue=1)
    got = Collected()
    source = stream(spark, cluster, topic, startingOffsets="earliest", maxOffsetsPerTrigger=700)
    run_to_end(source, got, tmp_path / "rows")
    assert [len(batch) for batch in got.batches.values()] == [700, 700, 601]
    assert "cold" in got.batches[0]
    got = Collected()
    source = stream(spark, cluster, topic, startingOffsets="earliest", maxBytesPerTrigger="200k")
    run_to_end(source, got, tmp_path / "bytes")
    assert len(got.rows) == 2001
    assert 2 <= len(got.batches) <= 4


def test_what_cannot_be_read_is_refused_in_one_line_where_it_is_written(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    """Options in `load()`, names that are not there when the query is planned."""
    reader = spark.readStream.format("rocketmq").option("nameServer", cluster.address)
    for options, reason in (
        ({"subscribe": topic, "startingOffset": "latest"}, "did you mean 'startingOffsets'"),
        ({"subscribe": topic, "failOnDataLoss": "maybe"}, "must be true or false, not 'maybe'"),
        ({}, "option 'subscribe' is missing"),
        ({"subscribe": topic, "startingTimestamp": "9999999999999"}, "is in the future"),
    ):
        with pytest.raises(PySparkException) as refused:
            reader.options(**options).load()
        assert reason in told(refused.value)
        assert len(told(refused.value).strip().splitlines()) <= 2
        reader = spark.readStream.format("rocketmq").option("nameServer", cluster.address)
    columns = spark.readStream.format("rocketmq").schema("body string, bdy string")
    unknown = columns.options(nameServer=cluster.address, subscribe=topic).load()
    with pytest.raises(PySparkException, match="unknown column 'bdy'; the source has") as refused:
        run_to_end(unknown, Collected(), tmp_path)
    told(refused.value)
    wrong = topic[:-1]
    with pytest.raises(PySparkException, match=f"did you mean '{topic}'") as refused:
        frame(spark, cluster, f"{topic},{wrong}").count()
    told(refused.value)
    with pytest.raises(PySparkException, match="must not be latest for a batch") as refused:
        frame(spark, cluster, topic, startingOffsets="latest").count()
    told(refused.value)


def test_the_sink_pins_queues_and_fills_them_all(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.create_topic("spread-by-spark", queues=8)
    sink = {"nameServer": cluster.address, "topic": topic}
    rows = spark.range(0, 200, 1, 2).selectExpr("cast(id AS string) AS body")
    rows.write.format("rocketmq").options(**sink).mode("append").save()
    counted = frame(spark, cluster, topic).groupBy("queueId").count().collect()
    assert {row.queueId for row in counted} == set(range(8))
    pinned = spark.range(9).selectExpr(
        "cast(id AS string) AS body", "cast(id % 3 AS int) AS queueId"
    )
    other = cluster.create_topic("pinned-by-spark", queues=8)
    sink["topic"] = other
    pinned.write.format("rocketmq").options(**sink).mode("append").save()
    found = frame(spark, cluster, other).selectExpr(
        "queueId", "cast(cast(body AS string) AS int) % 3 AS wanted"
    )
    assert [(row.queueId, row.wanted) for row in found.distinct().sort("queueId").collect()] == [
        (0, 0),
        (1, 1),
        (2, 2),
    ]
    wrong = spark.range(1).selectExpr("'x' AS body", "8 AS queueId")
    with pytest.raises(PySparkException, match="column 'queueId' is 8, which is not among") as lost:
        wrong.write.format("rocketmq").options(**sink).mode("append").save()
    told(lost.value)


def test_lag_is_logged_and_written_for_prometheus(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    send(cluster, topic, range(30))
    reports: list[StreamSummary] = []
    listener = LagListener(metrics_file=tmp_path / "streams.prom", report=reports.append)
    options: dict[str, Any] = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 10}
    spark.streams.addListener(listener)
    try:
        with caplog.at_level(logging.INFO, "pocketmq.spark"):
            source = stream(spark, cluster, topic, **options)
            query = run_to_end(source, Collected(), tmp_path / "checkpoint")

            def seen() -> list[StreamSummary]:
                """Spark tells listeners late, of queries of other tests, too."""
                return [each for each in reports if each.query == query.id]

            deadline = time.monotonic() + PATIENCE
            while len(seen()) < 3:
                assert time.monotonic() < deadline
                time.sleep(0.01)
    finally:
        spark.streams.removeListener(listener)
    assert [each.lag for each in seen()][:3] == [20, 10, 0]
    assert seen()[0].queue == MessageQueue(topic, "broker-0", 0)
    assert f"stream progress: query={query.id} " in caplog.text
