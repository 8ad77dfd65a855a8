"""The source in a real session: batches, SQL, streams, restarts."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from pocketmq import Cluster
from pocketmq.spark.progress import stream_lag
from pocketmq.spark.source_options import PLANS_APART
from tests.spark.topics import send

PATIENCE = 100


def frame(spark: SparkSession, cluster: Cluster, topic: str, **options: Any) -> DataFrame:
    reader = spark.read.format("rocketmq").option("nameServer", cluster.address)
    return reader.option("subscribe", topic).options(**options).load()


def stream(spark: SparkSession, cluster: Cluster, topic: str, **options: Any) -> DataFrame:
    reader = spark.readStream.format("rocketmq").option("nameServer", cluster.address)
    return reader.option("subscribe", topic).options(**options).load()


class Collected:
    """What a stream gave, batch by batch; it fails where it is told to."""

    def __init__(self, fail_in: int | None = None) -> None:
        self.batches: dict[int, list[str]] = {}
        self._fail_in = fail_in

    def __call__(self, batch: DataFrame, number: int) -> None:
        found = sorted(row.body.decode() for row in batch.select("body").collect())
        if number == self._fail_in:
            raise RuntimeError("as the test wants it")
        self.batches[number] = found

    @property
    def rows(self) -> list[str]:
        return sorted(body for batch in self.batches.values() for body in batch)


def run_to_end(source: DataFrame, sink: Collected, checkpoint: Path) -> StreamingQuery:
    writer = source.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE)
    return query


def test_a_topic_is_a_table(spark: SparkSession, cluster: Cluster, topic: str) -> None:
    send(cluster, topic, range(100), queue=0, tag="a", properties={"region": "eu"})
    send(cluster, topic, range(50), queue=1, tag="b")
    orders = frame(spark, cluster, topic, minPartitions=3)
    assert {(row.tags, row["count"]) for row in orders.groupBy("tags").count().collect()} == {
        ("a", 100),
        ("b", 50),
    }
    assert orders.where("properties['region'] = 'eu' and queueOffset >= 90").count() == 10
    assert orders.rdd.getNumPartitions() == 3


def test_sql_finds_the_source_by_its_name(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    """In a session that nobody has told of it."""
    send(cluster, topic, range(7))
    other = spark.newSession()
    other.sql(
        f"CREATE TEMPORARY VIEW orders USING rocketmq "
        f"OPTIONS (nameServer '{cluster.address}', subscribe '{topic}')"
    )
    query = "SELECT queueId, cast(body AS string) AS text FROM orders WHERE queueOffset = 3"
    assert [tuple(row) for row in other.sql(query).collect()] == [(0, "3")]


def test_a_schema_of_ones_own_names_the_columns(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    send(cluster, topic, ["x"], keys=["k"])
    reader = spark.read.format("rocketmq").schema("keys string, body string, queueId int")
    rows = reader.options(nameServer=cluster.address, subscribe=topic).load().collect()
    assert [row.asDict() for row in rows] == [{"keys": "k", "body": "x", "queueId": 0}]


@pytest.mark.parametrize("options", [{}, {"pushdown": "true"}] if PLANS_APART else [{}])
def test_queries_of_one_dataframe_do_not_disturb_each_other(
    spark: SparkSession, cluster: Cluster, topic: str, options: dict[str, str]
) -> None:
    """Each has its own filters, or none; also both sides of a union and of a join."""
    send(cluster, topic, range(50), queue=0, tag="a")
    send(cluster, topic, range(50), queue=1, tag="b")
    orders = frame(spark, cluster, topic, **options)
    few = orders.where("queueId = 1 and queueOffset < 5 and tags = 'b'")
    late = orders.where("queueOffset >= 48")
    assert (few.count(), orders.count(), late.count(), few.count()) == (5, 100, 4, 5)
    assert orders.where("tags = 'a' or queueOffset = 1").count() == 51
    assert few.where("storeTimestamp < '2000-01-01'").count() == 0
    assert (few.union(late).count(), few.union(orders).count()) == (9, 105)
    assert orders.union(few).count() == 105
    pairs = few.alias("x").join(orders.alias("y"), "queueOffset")
    assert (pairs.count(), few.join(late, "queueId").count()) == (10, 10)
    where = "queueId", "queueOffset"
    assert orders.select(*where).exceptAll(few.select(*where)).count() == 95
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW twice USING rocketmq OPTIONS "
        f"(nameServer '{cluster.address}', subscribe '{topic}'"
        f"{''.join(f', {name} {value!r}' for name, value in options.items())})"
    )
    half = "SELECT count(*) FROM twice WHERE queueId = 0"
    both = f"SELECT (SELECT count(*) FROM twice), ({half}), ({half} AND queueOffset < 3)"
    assert tuple(spark.sql(both).first() or ()) == (100, 50, 3)


def test_a_wrong_option_is_named_to_the_user(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    with pytest.raises(PySparkException, match="is unknown; did you mean 'startingOffsets'"):
        frame(spark, cluster, topic, startingOffset="earliest").count()
    with pytest.raises(PySparkException, match="no route for topic 'no-such-topic'"):
        frame(spark, cluster, "no-such-topic", retryTimeout="100ms").count()


def test_a_stream_goes_on_where_it_stopped(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    send(cluster, topic, range(10))
    got = Collected()
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 4, "groupId": f"g-{topic}"}
    query = run_to_end(stream(spark, cluster, topic, **options), got, tmp_path)
    assert [len(batch) for batch in got.batches.values()] == [4, 4, 2]
    assert stream_lag(query.lastProgress).total == 0
    send(cluster, topic, range(10, 13), queue=1)
    run_to_end(stream(spark, cluster, topic, **options), got, tmp_path)
    assert got.rows == sorted(str(n) for n in range(13))


def test_a_stream_that_fails_in_its_first_batch_loses_nothing(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    """`latest` is another place by the time it starts again."""
    send(cluster, topic, ["old"])
    source = stream(spark, cluster, topic, startingOffsets="latest")
    failing = Collected(fail_in=1)
    writer = source.writeStream.foreachBatch(failing)
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        query.processAllAvailable()  # batch 0 is empty, and tells where the stream began
        send(cluster, topic, ["first"])
        with pytest.raises(PySparkException, match="as the test wants it"):
            query.awaitTermination(PATIENCE)
    finally:
        query.stop()
    send(cluster, topic, ["second"])
    got = Collected()
    run_to_end(source, got, tmp_path)
    assert got.rows == ["first", "second"]


def test_batch_0_that_fails_is_read_again_from_where_it_began(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    moment = spark.sql("SELECT cast(unix_millis(now()) AS string) AS ms").collect()[0].ms
    send(cluster, topic, ["a"])
    source = stream(spark, cluster, topic, startingTimestamp=moment)
    with pytest.raises(PySparkException, match="as the test wants it"):
        run_to_end(source, Collected(fail_in=0), tmp_path)
    send(cluster, topic, ["b"])
    got = Collected()
    run_to_end(stream(spark, cluster, topic, startingOffsets="latest"), got, tmp_path)
    assert got.rows == ["a", "b"]


def test_new_queues_appear_in_a_running_stream(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    got = Collected()
    source = stream(spark, cluster, topic, startingOffsets="earliest", discoveryInterval="0")
    writer = source.writeStream.foreachBatch(got).option("checkpointLocation", str(tmp_path))
    query = writer.start()
    try:
        send(cluster, topic, ["before"])
        query.processAllAvailable()
        cluster.create_topic(topic, queues=4)
        send(cluster, topic, ["after"], queue=3)
        query.processAllAvailable()
        assert got.rows == ["after", "before"]
    finally:
        query.stop()


def test_data_that_is_gone_ends_the_query_with_its_place(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    send(cluster, topic, range(3))
    beyond = f'{{"{topic}": {{"broker-0": {{"0": 77}}}}}}'
    options = {"startingOffsets": beyond, "retryTimeout": "100ms"}
    with pytest.raises(PySparkException, match="startingOffsets says 77, and it holds 0 to 2"):
        run_to_end(stream(spark, cluster, topic, **options), Collected(), tmp_path / "strict")
    got = Collected()
    lenient = stream(spark, cluster, topic, failOnDataLoss="false", **options)
    run_to_end(lenient, got, tmp_path / "lenient")
    assert got.rows == []


def test_streams_are_joined_and_aggregated_like_any_other(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    send(cluster, topic, range(20), tag="a")
    send(cluster, topic, range(5), tag="b", queue=1)
    counted = stream(spark, cluster, topic, startingOffsets="earliest").groupBy("tags").count()
    writer = counted.writeStream.format("memory").queryName("counted").outputMode("complete")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE)
    assert {tuple(row) for row in spark.table("counted").collect()} == {("a", 20), ("b", 5)}


def test_a_table_of_the_catalog_is_read_and_written(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    send(cluster, topic, range(5))
    name = f"orders_{topic[2:]}"
    place = f"nameServer '{cluster.address}', subscribe '{topic}'"
    spark.sql(f"CREATE TABLE {name} USING rocketmq OPTIONS ({place})")
    try:
        assert spark.sql(f"SELECT * FROM {name}").count() == 5
        assert spark.table(name).where("queueOffset >= 3").count() == 2
        where = f'WITH (startingOffsets=\'{{"{topic}": {{"broker-0": {{"0": 4}}}}}}\')'
        assert spark.sql(f"SELECT * FROM {name} {where}").count() == 1
        spark.sql(f"INSERT INTO {name} (body, tags) VALUES (cast('by sql' AS binary), 'sql')")
        found = spark.sql(f"SELECT cast(body AS string) AS text FROM {name} WHERE tags = 'sql'")
        assert [row.text for row in found.collect()] == ["by sql"]
        assert spark.readStream.table(name).isStreaming
    finally:
        spark.sql(f"DROP TABLE {name}")
    for wrong, reason in (
        (f"{place}, subscribr 'x'", "option 'subscribr' is unknown; did you mean 'subscribe'"),
        (f"{place}, accessKey 'a', secretKey 's3cr3t'", "cannot be stored in a table"),
        (None, "option 'subscribe' is missing; set it to read the table, 'topic' to write it"),
    ):
        given = "" if wrong is None else f"OPTIONS ({wrong})"
        with pytest.raises(PySparkException) as refused:
            spark.sql(f"CREATE TABLE wrong_{name} USING rocketmq {given}")
        assert reason in str(refused.value)
        assert "Traceback" not in str(refused.value)
        assert "s3cr3t" not in str(refused.value)
