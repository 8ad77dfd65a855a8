"""Spark on a Java cluster: topics are tables and streams; rows are messages, each once if asked."""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StringType, StructType

import pocketmq as mq
from pocketmq.blocking.fenced import FencedConnection
from pocketmq.errors import DataLost, OptionInvalid
from pocketmq.spark.batch_reader import batch_reader
from pocketmq.spark.connections import forget_senders
from pocketmq.spark.exactly_once import ExactlyOnceWriter
from pocketmq.spark.schema import full_schema
from pocketmq.spark.sink import BatchWriter, Written
from pocketmq.spark.sink_options import sink_plan
from pocketmq.spark.stream_reader import stream_reader
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import Admin, Jars, wait_until
from tests.spark.test_moving import Gone, Relay, struck
from tests.spark.test_source import Collected, run_to_end
from tests.spark.topics import rows

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

QUERY = "3d3e8b4e-0000-4000-8000-0123456789ab"
SCHEMA = StructType().add("body", StringType()).add("tags", StringType())


@pytest.fixture(scope="module")
def java(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    with java_brokers(jars, tmp_path_factory.mktemp("java"), "broker-a") as running:
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


def check_once(java: JavaBroker, topic: str, expected: Iterable[str]) -> None:
    """Check what both queues hold once the broker has indexed a last message of each."""
    found = Counter([*expected, "last", "last"])
    send(java, topic, ["last", "last"])
    until(lambda: bodies(java, topic)["last"] == found["last"], lambda: bodies(java, topic))
    assert bodies(java, topic) == found


def send(java: JavaBroker, topic: str, texts: Iterable[str]) -> list[str]:
    """Send to both queues in turn; give the bodies as a sorted list."""
    sent = []
    with mq.Producer(java.address, group="shop") as producer:
        for number, text in enumerate(texts):
            queue = mq.MessageQueue(topic, "broker-a", number % 2)
            assert producer.send(mq.Message(topic, text.encode()), queue=queue).ok
            sent.append(text)
    return sorted(sent)


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


def test_a_move_that_broke_off_is_completed_there(java: JavaBroker, tmp_path: Path) -> None:
    """The broker reads a request only after its sender died and its successor has asked."""
    java.create_topic("moved", 2)
    found = plan(java, "moved", exactlyOnce="true", ledger=str(tmp_path), batchSize="1k")
    texts = [f"{number:03}" for number in range(60)]
    relay = Relay(java.brokers["broker-a"])

    def writer() -> ExactlyOnceWriter:
        return ExactlyOnceWriter(found, found.exactly_once)

    def die(open_one: FencedConnection, queue: mq.MessageQueue, body: bytes) -> None:
        group = f"pocketmq-spark-sink-{QUERY}"
        held = FencedConnection(relay.address, found.reach.client(), group=group)
        assert open_one.others() == [held.name]
        relay.gate.clear()
        held.begin(queue, body)
        held.close()
        raise Gone

    first = writer()
    prepared: list[WriterCommitMessage | None]
    prepared = [first.prepare(first._sender(), QUERY, 0, batches(*texts), 0)]
    lost = first.prepare(first._sender(), QUERY, 0, batches(*texts), 0)
    assert lost.transaction
    with pytest.raises(Gone):
        struck(first, die).commit(prepared, 0)
    opener = threading.Timer(1.0, relay.gate.set)
    opener.start()
    writer().commit(prepared, 0)
    relay.thread.join()
    check_once(java, "moved", texts)
    writer().commit(prepared, 0)
    check_once(java, "moved", [*texts, "last", "last"])


@pytest.mark.line("5.x")  # what Spark adds does not depend on the release
def test_a_stream_written_there_comes_once(
    spark: SparkSession, java: JavaBroker, tmp_path: Path
) -> None:
    """Also when Spark writes a batch again because it did not note that it had."""
    java.create_topic("written", 2)
    lines = [f"{name}{number}" for name in "ab" for number in range(20)]
    (tmp_path / "in").mkdir()
    for name in "ab":
        text = "\n".join(line for line in lines if line.startswith(name))
        (tmp_path / "in" / f"{name}.txt").write_text(text)
    source = spark.readStream.format("text").option("maxFilesPerTrigger", 1)
    frame = source.load(str(tmp_path / "in")).withColumnRenamed("value", "body")
    checkpoint = tmp_path / "checkpoint"
    places = {"nameServer": java.address, "topic": "written", "exactlyOnce": "true"}

    def write() -> None:
        writer = frame.writeStream.format("rocketmq").options(**places)
        writer = writer.option("checkpointLocation", str(checkpoint))
        assert writer.trigger(availableNow=True).start().awaitTermination(200)

    write()
    second = checkpoint / "commits" / "1"
    second.unlink()
    second.with_name(".1.crc").unlink(missing_ok=True)
    write()
    assert second.exists(), "it was not written again"
    check_once(java, "written", lines)


def test_a_topic_recreated_there_is_told_by_its_first_message(java: JavaBroker) -> None:
    """As are names that are not there, and all queues answer together."""
    java.create_topic("recreated", 200)
    send(java, "recreated", ["old 0", "-", "old 1"])
    until(lambda: len(stored(java, "recreated")) == 3, lambda: bodies(java, "recreated"))
    given = {"nameServer": java.address, "subscribe": "recreated", "retryTimeout": "20s"}
    reader = stream_reader(given | {"startingOffsets": "earliest"}, full_schema())
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert end["recreated"]["broker-a"]["0"] == 2
    assert len(end["@since"]["recreated"]["broker-a"]) == 200
    reader.stop()
    with mq.Admin(java.address) as admin:
        admin.topics.delete("recreated", "Java")
    java.create_topic("recreated", 200)
    send(java, "recreated", ["new 0", "-", "new 1", "-", "new 2"])
    until(lambda: len(stored(java, "recreated")) == 5, lambda: bodies(java, "recreated"))
    again = stream_reader(given, full_schema())
    with pytest.raises(DataLost, match="it was recreated: its first message, offset 0"):
        again.latestOffset(end, ReadAllAvailable())
    again.stop()
    lenient = stream_reader(given | {"failOnDataLoss": "false"}, full_schema())
    after = lenient.latestOffset(end, ReadAllAvailable())
    found = [row["body"] for row in rows(lenient, lenient.partitions(end, after))]
    assert sorted(found) == [b"-", b"-", b"new 0", b"new 1", b"new 2"]
    lenient.stop()
    wrong = batch_reader(given | {"subscribe": "recreated,recreatd"}, full_schema())
    with pytest.raises(OptionInvalid, match="'recreatd'; did you mean 'recreated'"):
        wrong.partitions()


@pytest.mark.line("5.x")  # what Spark adds does not depend on the release
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


def test_a_table_begins_at_a_time(java: JavaBroker) -> None:
    java.create_topic("timed", 2)
    send(java, "timed", map(str, range(20)))
    until(lambda: len(stored(java, "timed")) == 20, lambda: bodies(java, "timed"))
    last = max(row["storeTimestamp"] for row in stored(java, "timed"))
    moment = round(last.timestamp() * 1000) + 1
    until(lambda: time.time() * 1000 >= moment, lambda: "the millisecond of the last message")
    late = send(java, "timed", map(str, range(20, 40)))
    until(lambda: len(stored(java, "timed")) == 40, lambda: bodies(java, "timed"))
    options = {"nameServer": java.address, "subscribe": "timed", "startingTimestamp": str(moment)}
    reader = batch_reader(options, full_schema())
    found = rows(reader, reader.partitions())
    assert sorted(row["body"].decode() for row in found) == late


@pytest.mark.line("5.x")  # what Spark adds does not depend on the release
def test_a_stream_goes_on_where_it_was_and_mqadmin_sees_it(
    spark: SparkSession, java: JavaBroker, jars: Jars, tmp_path: Path
) -> None:
    """Each message is in one batch, also when a batch failed; the group's lag is the stream's."""
    java.create_topic("streamed", 2)
    options = {"nameServer": java.address, "subscribe": "streamed", "groupId": "sparks"}
    reader = spark.readStream.format("rocketmq").options(startingOffsets="earliest", **options)
    sent = send(java, "streamed", map(str, range(60)))
    first = Collected()
    run_to_end(reader.load(), first, tmp_path / "checkpoint")
    assert first.rows == sent
    more = send(java, "streamed", map(str, range(60, 100)))
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
