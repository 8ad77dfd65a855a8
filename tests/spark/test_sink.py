"""The sink on a cluster: rows arrive as messages, all of them, or the task says which did not."""

import pickle
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.types import (
    BinaryType,
    DoubleType,
    IntegerType,
    MapType,
    StringType,
    StructType,
)

from pocketmq import Cluster
from pocketmq.errors import RowRefused, RowsNotSent
from pocketmq.spark.batch_reader import batch_reader
from pocketmq.spark.connections import forget_senders
from pocketmq.spark.schema import full_schema
from pocketmq.spark.sink import BatchWriter, Written, batch_writer, stream_writer
from tests.spark.test_sink_exactly_once import until
from tests.spark.topics import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = (
    StructType()
    .add("topic", StringType())
    .add("body", BinaryType())
    .add("tags", StringType())
    .add("keys", StringType())
    .add("properties", MapType(StringType(), StringType()))
    .add("orderingKey", StringType())
    .add("delay", DoubleType())
)
ARROW = pa.schema(
    [
        ("topic", pa.string()),
        ("body", pa.binary()),
        ("tags", pa.string()),
        ("keys", pa.string()),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("orderingKey", pa.string()),
        ("delay", pa.float64()),
    ]
)


@pytest.fixture(autouse=True, scope="module")
def _no_sender_is_left() -> Iterator[None]:
    yield
    forget_senders()


def writer(address: str, **options: str) -> BatchWriter:
    """Return a writer as tasks get it."""
    options |= {"nameServer": address, "requestTimeout": "30s"}  # killed brokers refuse at once
    made = batch_writer(options, SCHEMA, overwrite=False)
    return pickle.loads(pickle.dumps(made))  # type: ignore[no-any-return]


def batch(*found: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(found), schema=ARROW)


def stored(cluster: Cluster, topic: str) -> list[dict[str, Any]]:
    """Return what a topic holds, in the order of its queues."""
    reader = batch_reader({"nameServer": cluster.address, "subscribe": topic}, full_schema())
    found = list(rows(reader, reader.partitions()))
    return sorted(found, key=lambda row: (row["queueId"], row["queueOffset"]))


def test_rows_arrive_with_all_they_have(cluster: Cluster, topic: str) -> None:
    found = batch(
        {"topic": topic, "body": b"a", "tags": "paid", "keys": "k1 k2",
         "properties": [("region", "eu"), ("note", None)]},
        {"topic": topic, "body": b"b"},
    )  # fmt: skip
    assert writer(cluster.address).write(iter([found])) == Written(2)
    first, second = sorted(stored(cluster, topic), key=lambda row: row["body"])
    assert (first["body"], first["tags"], first["keys"]) == (b"a", "paid", "k1 k2")
    assert dict(first["properties"]) == {"region": "eu"}
    assert (second["body"], second["tags"], second["keys"]) == (b"b", None, None)
    assert dict(second["properties"]) == {}
    assert len({first["messageId"], second["messageId"]}) == 2


def test_batches_take_turns_among_the_queues(cluster: Cluster, topic: str) -> None:
    small = writer(cluster.address, topic=topic, batchSize="1k")
    bodies = [b"%04d" % number for number in range(200)]
    small.write(iter([batch(*({"body": body} for body in bodies))]))
    found = stored(cluster, topic)
    assert Counter(row["body"] for row in found) == Counter(bodies)
    shares = Counter(row["queueId"] for row in found)
    assert min(shares[0], shares[1]) > 80


def test_a_small_write_fills_all_queues_and_a_pinned_one_its_own(cluster: Cluster) -> None:
    topic = cluster.create_topic("eight-queues", queues=8)
    writer(cluster.address, topic=topic).write(iter([batch(*[{"body": b"x"}] * 64)]))
    assert Counter(row["queueId"] for row in stored(cluster, topic)) == dict.fromkeys(range(8), 8)
    schema = StructType().add("body", BinaryType()).add("queueId", IntegerType())
    options = {"nameServer": cluster.address, "topic": topic}
    pinned = pa.RecordBatch.from_pydict(
        {"body": [b"%d" % at for at in range(20)], "queueId": pa.array([5] * 20, pa.int32())}
    )
    made = batch_writer(options, schema, overwrite=False)
    made.write(iter([pinned]))
    found = [row["body"] for row in stored(cluster, topic) if row["queueId"] == 5]
    assert found[8:] == [b"%d" % at for at in range(20)]
    wrong = pa.RecordBatch.from_pydict({"body": [b"x"], "queueId": pa.array([8], pa.int32())})
    with pytest.raises(RowRefused, match="column 'queueId' is 8"):
        made.write(iter([wrong]))


def test_rows_after_the_first_fill_requests_instead(cluster: Cluster) -> None:
    topic = cluster.create_topic("four-queues", queues=4)
    rows = batch(*[{"body": b"x"}] * 40)
    writer(cluster.address, topic=topic).write(iter([rows, rows]))
    shares = Counter(row["queueId"] for row in stored(cluster, topic))
    assert sorted(shares.values()) == [10, 10, 10, 50]


def test_rows_of_one_key_are_in_one_queue_in_order(cluster: Cluster, topic: str) -> None:
    """Over several batches of rows and many requests."""
    keyed = [{"body": b"%d" % at, "orderingKey": f"customer-{at % 7}"} for at in range(300)]
    small = writer(cluster.address, topic=topic, batchSize="1k")
    small.write(iter([batch(*keyed[:120]), batch(*keyed[120:])]))
    of_key: dict[int, list[tuple[int, int]]] = {}
    for row in stored(cluster, topic):
        number = int(row["body"])
        of_key.setdefault(number % 7, []).append((row["queueId"], number))
    for key, found in of_key.items():
        assert [number for _, number in found] == list(range(key, 300, 7))
        assert len({queue for queue, _ in found}) == 1


def test_what_is_too_large_for_a_batch_goes_alone(cluster: Cluster, topic: str) -> None:
    large = bytes(range(256)) * 4096
    writer(cluster.address, topic=topic).write(
        iter([batch({"body": b"a"}, {"body": large, "tags": "large"}, {"body": b"b"})])
    )
    found = {row["body"]: row["tags"] for row in stored(cluster, topic)}
    assert found == {b"a": None, large: "large", b"b": None}


def test_a_delayed_row_comes_later(cluster: Cluster, topic: str) -> None:
    found = batch(
        {"body": b"later", "delay": 1.0},
        {"body": b"much later", "delay": 3600.0},
        {"body": b"now"},
    )
    writer(cluster.address, topic=topic).write(iter([found]))
    until(lambda: len(stored(cluster, topic)) >= 2, lambda: stored(cluster, topic))
    waited = {
        row["body"]: (row["storeTimestamp"] - row["bornTimestamp"]).total_seconds()
        for row in stored(cluster, topic)
    }
    assert set(waited) == {b"now", b"later"}
    assert waited[b"later"] >= 1.0


def test_nothing_of_a_batch_with_a_bad_row_is_sent(cluster: Cluster, topic: str) -> None:
    """What came before it is, and Spark will do it all again."""
    good, bad = batch({"body": b"a"}, {"body": b"b"}), batch({"body": b"c"}, {"body": b""})
    with pytest.raises(RowRefused, match=r"row 3 \(from 0\): column 'body' is empty"):
        writer(cluster.address, topic=topic).write(iter([good, bad]))
    assert {row["body"] for row in stored(cluster, topic)} <= {b"a", b"b"}


def test_a_task_ends_only_when_brokers_have_what_it_sent(tmp_path: Path) -> None:
    """It waits for a broker that comes back, and names the rows if none does."""
    with Cluster(data=tmp_path, config={"autoCreateTopicEnable": False}) as running:
        topic = running.create_topic("orders", 1)
        patient = writer(running.address, topic=topic, retryTimeout="60s")
        patient.write(iter([batch({"body": b"before"})]))
        lost_way = writer(running.address, topic="unknown", retryTimeout="100ms")
        with pytest.raises(
            RowsNotSent, match=r"row 0 \(from 0\) could not be sent to topic 'unknown'"
        ):
            lost_way.write(iter([batch({"body": b"x", "delay": 1.0})]))
        running.kill("broker-0")
        hasty = writer(running.address, topic=topic, retryTimeout="100ms")
        with pytest.raises(
            RowsNotSent, match=r"rows 0 to 1 \(from 0\) could not be sent to topic"
        ) as lost:
            hasty.write(iter([batch({"body": b"x"}, {"body": b"y"})]))
        assert (lost.value.topic, lost.value.first, lost.value.last) == (topic, 0, 1)
        back = threading.Timer(0.5, running.restart, ("broker-0",))
        back.start()
        patient.write(iter([batch({"body": b"after"})]))
        back.join()
        assert [row["body"] for row in stored(running, topic)] == [b"before", b"after"]
        forget_senders()


def test_a_stream_without_exactly_once_sends_at_once(cluster: Cluster, topic: str) -> None:
    made = stream_writer({"nameServer": cluster.address, "topic": topic}, SCHEMA, overwrite=False)
    assert made.write(iter([batch({"body": b"a"})])) == Written(1)
    assert [row["body"] for row in stored(cluster, topic)] == [b"a"]


# With Spark


def test_spark_writes_what_it_reads(spark: "SparkSession", cluster: Cluster, topic: str) -> None:
    frame = spark.range(0, 20_000, 1, 3).select(
        F.lit(topic).alias("topic"),
        F.col("id").cast("string").alias("body"),
        F.when(F.col("id") % 2 == 0, "even").alias("tags"),
        F.array(F.concat(F.lit("k"), F.col("id"))).alias("keys"),
        F.create_map(F.lit("third"), (F.col("id") % 3).cast("string")).alias("properties"),
    )
    frame.write.format("rocketmq").option("nameServer", cluster.address).mode("append").save()
    found = stored(cluster, topic)
    assert sorted(int(row["body"]) for row in found) == list(range(20_000))
    for row in found:
        number = int(row["body"])
        assert row["tags"] == (None if number % 2 else "even")
        assert row["keys"] == f"k{number}"
        assert dict(row["properties"]) == {"third": str(number % 3)}


def test_spark_names_the_row_that_fails(
    spark: "SparkSession", cluster: Cluster, topic: str
) -> None:
    frame = spark.range(0, 10, 1, 2).select(
        F.when(F.col("id") != 7, F.col("id").cast("string")).alias("body")
    )
    options = {"nameServer": cluster.address, "topic": topic}
    with pytest.raises(PySparkException, match=r"row 2 of partition 1 \(from 0\): column 'body'"):
        frame.write.format("rocketmq").options(**options).mode("append").save()
    with pytest.raises(PySparkException, match="can only be appended to"):
        frame.write.format("rocketmq").options(**options).mode("overwrite").save()


def test_spark_streams_into_topics(
    spark: "SparkSession", cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("\n".join(map(str, range(100))))
    lines = spark.readStream.format("text").load(str(tmp_path / "in"))
    query = (
        lines.withColumnRenamed("value", "body")
        .writeStream.format("rocketmq")
        .options(nameServer=cluster.address, topic=topic)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(100)
    assert sorted(int(row["body"]) for row in stored(cluster, topic)) == list(range(100))
