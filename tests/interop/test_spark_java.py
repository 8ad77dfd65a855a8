"""Spark on a Java cluster: topics are tables and streams; rows are messages, each once if asked."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType

import pocketmq as mq
from pocketmq.spark.batch_reader import batch_reader
from pocketmq.spark.exactly_once import ExactlyOnceWriter
from pocketmq.spark.ledger import Decision, Ledger
from pocketmq.spark.schema import full_schema
from pocketmq.spark.senders import forget_senders
from pocketmq.spark.sink import BatchWriter, Written
from pocketmq.spark.sink_options import sink_plan
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import Admin, Jars, wait_until
from tests.spark.test_source import Collected, run_to_end
from tests.spark.topics import rows

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

QUERY = "3d3e8b4e-0000-4000-8000-0123456789ab"
ASKS_SOON = {"transactionCheckInterval": 2000}
SCHEMA = StructType().add("body", StringType()).add("tags", StringType())


@pytest.fixture(scope="module")
def java(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    with java_brokers(jars, tmp_path_factory.mktemp("java"), "broker-a", **ASKS_SOON) as running:
        yield running
        forget_senders()


def plan(java: JavaBroker, topic: str, **options: str) -> Any:
    given = {"nameServer": java.address, "topic": topic, **options}
    return sink_plan(given, SCHEMA, overwrite=False, stream="exactlyOnce" in options)


def batches(*bodies: str) -> Iterator[pa.RecordBatch]:
    tags = ["paid" if body.isdigit() else None for body in bodies]
    yield pa.record_batch([pa.array(bodies), pa.array(tags, pa.string())], names=["body", "tags"])


def stored(java: JavaBroker, topic: str) -> list[dict[str, Any]]:
    reader = batch_reader({"nameServer": java.address, "subscribe": topic}, full_schema())
    return list(rows(reader, reader.partitions()))


def bodies(java: JavaBroker, topic: str) -> Counter[str]:
    return Counter(row["body"].decode() for row in stored(java, topic))


def until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < deadline, f"still {what()}"
        time.sleep(0.2)


def test_batches_of_rows_are_messages_there(java: JavaBroker) -> None:
    java.create_topic("rows", 4)
    texts = [str(number) for number in range(5000)]
    assert BatchWriter(plan(java, "rows", batchSize="64k")).write(batches(*texts)) == Written(5000)
    until(lambda: len(stored(java, "rows")) == 5000, lambda: len(stored(java, "rows")))
    found = stored(java, "rows")
    assert Counter(row["body"].decode() for row in found) == Counter(texts)
    assert {row["tags"] for row in found} == {"paid"}
    assert len({row["messageId"] for row in found}) == 5000
    assert len({row["queueId"] for row in found}) == 4


def test_half_messages_end_once_there(java: JavaBroker, tmp_path: Path) -> None:
    """By the driver that decided; after a crash by the broker's questions, never by both."""
    java.create_topic("halves", 2)
    how = {"exactlyOnce": "true", "ledger": str(tmp_path)}
    found = plan(java, "halves", **how)
    writer = ExactlyOnceWriter(found, found.exactly_once)
    sender, ledger = writer._sender(), Ledger(str(tmp_path))

    first = writer.prepare(sender, QUERY, 0, batches("a", "b", "c"), 0)
    lost = writer.prepare(sender, QUERY, 0, batches("a", "b"), 0)
    writer.commit([first], 0)
    writer.abort([first], 0)
    assert lost.transaction

    crashed = writer.prepare(sender, QUERY, 1, batches("d", "e", "f"), 0)
    again = writer.prepare(sender, QUERY, 1, batches("d", "e", "f"), 0)
    decision = Decision(transactions=[crashed.transaction])
    assert ledger.decide(QUERY, 1, decision) == (decision, True)
    writer.commit([again], 1)
    until(lambda: len(bodies(java, "halves")) == 6, lambda: bodies(java, "halves"))

    late = replace(writer.prepare(sender, QUERY, 2, batches("g"), 0), began=time.time() - 3)
    writer.commit([late], 2)
    assert not (tmp_path / QUERY / "2.ended").exists(), "the broker is left to ask"
    until(lambda: len(bodies(java, "halves")) == 7, lambda: bodies(java, "halves"))
    rounds = time.monotonic() + 5
    until(lambda: time.monotonic() > rounds, lambda: "some rounds of questions to come")
    assert bodies(java, "halves") == Counter("abcdefg")


def test_a_table_is_written_there_and_read_back(spark: SparkSession, java: JavaBroker) -> None:
    java.create_topic("tables", 4)
    table = spark.range(2000).selectExpr("cast(id as string) as body", "'t' as tags")
    places = {"nameServer": java.address, "topic": "tables"}
    table.write.format("rocketmq").options(**places).mode("append").save()
    wait_until(lambda: len(stored(java, "tables")) == 2000, "all rows")
    found = spark.read.format("rocketmq").options(nameServer=java.address, subscribe="tables")
    frame = found.load().selectExpr("cast(body as string) as text", "tags")
    assert {row.text for row in frame.collect()} == {str(number) for number in range(2000)}
    assert frame.where("tags = 't'").count() == 2000


def test_a_stream_goes_on_where_it_was_and_mqadmin_sees_it(
    spark: SparkSession, java: JavaBroker, jars: Jars, tmp_path: Path
) -> None:
    """Each message is in one batch, also when a batch failed; the group's lag is the stream's."""
    java.create_topic("streamed", 2)
    options = {"nameServer": java.address, "subscribe": "streamed", "groupId": "sparks"}
    reader = spark.readStream.format("rocketmq").options(startingOffsets="earliest", **options)
    sent = _send(java, range(60))
    first = Collected()
    run_to_end(reader.load(), first, tmp_path / "checkpoint")
    assert first.rows == sent
    more = _send(java, range(60, 100))
    with pytest.raises(Exception, match="as the test wants it"):
        run_to_end(
            reader.load(), Collected(fail_in=max(first.batches) + 1), tmp_path / "checkpoint"
        )
    again = Collected()
    run_to_end(reader.load(), again, tmp_path / "checkpoint")
    assert again.rows == more
    (tmp_path / "tool").mkdir()
    with Admin(jars, tmp_path / "tool") as admin:
        shown = admin.run(f"consumerProgress -n {java.address} -g sparks")
    lines = re.findall(r"streamed\s+broker-a\s+(\d)\s+(\d+)\s+(\d+)\s+(\d+)", shown)
    assert sorted(lines) == [("0", "50", "50", "0"), ("1", "50", "50", "0")], shown


def _send(java: JavaBroker, numbers: range) -> list[str]:
    """Send to both queues in turn; give the bodies as a sorted list."""
    with mq.Producer(java.address, group="shop") as producer:
        for number in numbers:
            queue = mq.MessageQueue("streamed", "broker-a", number % 2)
            assert producer.send(mq.Message("streamed", b"%d" % number), queue=queue).ok
    return sorted(str(number) for number in numbers)
