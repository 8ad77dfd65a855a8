"""Our Spark source and sink beside Spark's own for Kafka, in one session, in turns.

python -m benchmarks.spark_kafka [--rows N] [--page FILE] [reads|available|sinks|once|live …]

`--page` replaces the table between the marks of a page, as in docs/reference/spark-and-kafka.md.

Both brokers are processes of their own, with eight queues or partitions a topic; the CPU of Spark
and of the broker counts. Messages have 100 B bodies and a key; those of `orders` also have a tag
and three properties (Kafka: headers). What is compared runs in turns, three times, after two
runs of each that do not count; the best counts. The session is tuned as `spark_session` does it,
for both. Needs a JDK and Maven; skipped without.

Use a quiet machine and the default number of rows. With few rows Java still compiles while it is
measured: nearly all of Kafka's path is Java, so that the ratio would flatter ours.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from benchmarks._kafka_page import table, write_table
from benchmarks._kafka_pair import TURNS, Pair
from benchmarks._small_sends import SMALL, kafka_sender, our_sender
from benchmarks._spark_cpu import spark_cpu
from benchmarks.java.kafka import KafkaServers
from benchmarks.java.kafka_parts import KafkaParts, NoKafkaError, find_kafka, find_spark_source
from benchmarks.java.servers import QUEUES
from benchmarks.spark import THREE, Bench, cluster
from benchmarks.spark_sink import EXACTLY_ONCE_ROWS, full, save
from pocketmq import Admin
from pocketmq.model import TopicConfig
from pocketmq.spark import spark_session
from pocketmq.spark.engine import stop_session

ROWS = 500_000
ROUNDS = 20
FIRST = 5
"""Micro-batches that do not count: Java compiles."""
KAFKA_THREE = ("partition", "offset", "value")
SEVEN = (
    "keys string, body binary, topic string, brokerName string, queueId int, "
    "queueOffset long, storeTimestamp timestamp"
)
LARGE_POLLS = {"kafka.max.poll.records": "10000"}
NO_WAIT = {"kafka.fetch.max.wait.ms": "10"}
"""Kafka's broker holds a fetch for 500 ms, and a task's first one waits for that of the last."""
MANY = 256
CLUSTER = "DefaultCluster"


def fill(pair: Pair, topic: str, frame: DataFrame) -> None:
    """Send the same rows to both."""
    save(frame.drop("topic"), "rocketmq", nameServer=pair.bench.address, topic=topic)
    write_kafka(pair, frame, topic)


def write_kafka(pair: Pair, frame: DataFrame, topic: str) -> None:
    columns = [F.col("keys").cast("binary").alias("key")] if "keys" in frame.columns else []
    if "properties" in frame.columns:
        entries = F.transform(
            F.map_entries("properties"),
            lambda e: F.struct(e.key.alias("key"), e.value.cast("binary").alias("value")),
        )
        columns.append(entries.alias("headers"))
    columns.append(F.col("body").alias("value"))
    broker = {"kafka.bootstrap.servers": pair.kafka.broker, "topic": topic}
    save(frame.select(*columns), "kafka", includeHeaders="true", **broker)


def reads(pair: Pair, rows: int) -> None:
    noop = pair.bench.noop
    pair.compare(
        "read, all columns",
        lambda: noop(pair.ours("plain")),
        {
            "Kafka": lambda: noop(pair.theirs("plain")),
            "large polls": lambda: noop(pair.theirs("plain", **LARGE_POLLS)),
        },
        rows,
        (1.5, 1.0),
    )
    pair.compare(
        "read, with properties",
        lambda: noop(pair.ours("orders")),
        {"Kafka": lambda: noop(pair.theirs("orders", includeHeaders="true"))},
        rows,
        (1.5,),
    )
    pair.compare(
        "read, 3 columns",
        lambda: noop(pair.ours("plain", THREE)),
        {"Kafka": lambda: noop(pair.theirs("plain").select(*KAFKA_THREE))},
        rows,
        (2.0,),
    )


def available_now(pair: Pair, rows: int, schema: str | None = None) -> None:
    drain(pair.stream("plain", "earliest", ours=True, schema=schema), rows)


def kafka_available_now(pair: Pair, rows: int, *columns: str) -> None:
    frame = pair.stream("plain", "earliest", ours=False)
    drain(frame.select(*columns) if columns else frame, rows)


def drain(frame: DataFrame, rows: int) -> None:
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        assert sum(p["numInputRows"] for p in query.recentProgress) == rows


def sinks(pair: Pair, rows: int) -> None:
    bodies = full(pair.bench).select("body").cache()
    bodies.count()
    pair.compare(
        "sink, bodies",
        partial(save, bodies, "rocketmq", nameServer=pair.bench.address, topic="sink"),
        {"Kafka": partial(write_kafka, pair, bodies, "sink")},
        rows,
        (1.2,),
    )
    bodies.unpersist()
    rich = full(pair.bench).drop("topic").cache()
    rich.count()
    pair.compare(
        "sink, with properties",
        partial(save, rich, "rocketmq", nameServer=pair.bench.address, topic="sink"),
        {"Kafka": partial(write_kafka, pair, rich, "sink")},
        rows,
        (1.2,),
    )
    rich.unpersist()


def exactly_once(pair: Pair, rows: int) -> None:
    """Print what a stream costs with and without; the rows lie in files, one micro-batch."""
    with tempfile.TemporaryDirectory() as place:
        frame = full(pair.bench).select("body").limit(rows).repartition(2)
        frame.write.parquet(f"{place}/rows")
        for options in ({}, {"exactlyOnce": "true"}):
            took = []
            for turn in range(TURNS):
                lines = pair.bench.spark.readStream.schema(frame.schema).parquet(f"{place}/rows")
                writer = lines.writeStream.format("rocketmq").options(**options)
                writer = writer.options(nameServer=pair.bench.address, topic="sink")
                writer = writer.option("checkpointLocation", f"{place}/{turn}{len(options)}")
                query = writer.trigger(availableNow=True).start()
                query.awaitTermination()
                took.append(sum(p["batchDuration"] for p in query.recentProgress) / 1e3)
            name = "stream sink, exactly once" if options else "stream sink, at least once"
            pair.once.append((name, rows / min(took)))
            print(f"{name:34}{rows / min(took) / 1e3:8,.1f} k rows/s of the micro-batch")


def micro_batches(
    pair: Pair, topic: str, queues: int, *, ours: bool, **options: str
) -> tuple[float, float]:
    """Return the median duration, and the CPU of Spark, per micro-batch, in ms."""
    address = pair.bench.address if ours else pair.kafka.broker
    sender = our_sender if ours else kafka_sender
    with tempfile.TemporaryDirectory() as checkpoint, sender(address, topic, queues) as send:
        frame = pair.stream(topic, "latest", ours=ours, **options)
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.start()
        query.processAllAvailable()
        spent = 0.0
        for number in range(ROUNDS + FIRST):
            if number == FIRST:
                spent = spark_cpu(pair.bench.java)
            send()
            query.processAllAvailable()
        spent = spark_cpu(pair.bench.java) - spent
        found = [p for p in query.recentProgress if p["numInputRows"]][FIRST:]
        query.stop()
    took = [p["durationMs"]["triggerExecution"] for p in found]
    return median(took), 1e3 * spent / len(found)


def live(pair: Pair) -> None:
    print(f"\n{f'micro-batch of {SMALL} rows':34}{'ms':>8}{'CPU ms':>8}")
    for name, ours, topic, queues, options in (
        ("ours, 8 queues", True, "live", QUEUES, {}),
        ("Kafka, 8 partitions", False, "live", QUEUES, {}),
        ("Kafka, fetch.max.wait.ms=10", False, "live", QUEUES, NO_WAIT),
        (f"ours, {MANY} queues", True, "wide", MANY, {}),
    ):
        took, spent = micro_batches(pair, topic, queues, ours=ours, **options)
        pair.live.append((f"{name}, {SMALL} rows", took, spent))
        print(f"{name:34}{took:8.0f}{spent:8.0f}", flush=True)


@contextmanager
def pairs(parts: KafkaParts, jars: list[Path], rows: int) -> Iterator[Pair]:
    """Start a session and both brokers."""
    sys.path.append(str(parts.client))
    config = {"spark.jars": ",".join(map(str, jars)), "spark.driver.memory": "2g"}
    with tempfile.TemporaryDirectory() as home, KafkaServers(parts, Path(home)) as kafka:
        spark = spark_session("pocketmq benchmark", master="local[2]", config=config)
        try:
            with cluster() as (address, broker):
                yield Pair(Bench(spark, address, broker, rows), kafka)
        finally:
            stop_session(spark)


def make_topics(pair: Pair) -> None:
    admin_of_kafka = import_module("confluent_kafka.admin")
    broker = {"bootstrap.servers": pair.kafka.broker}
    names = ("plain", "orders", "sink", "live")
    theirs = admin_of_kafka.AdminClient(broker)
    topics = [admin_of_kafka.NewTopic(name, QUEUES, 1) for name in names]
    for made in theirs.create_topics(topics).values():
        made.result()
    with Admin(pair.bench.address) as admin:
        for topic, queues in (("plain", QUEUES), ("sink", QUEUES), ("wide", MANY)):
            config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
            admin.topics.create(config, cluster=CLUSTER).all()


def available(pair: Pair, rows: int) -> None:
    """Kafka's source has seven columns, ours thirteen; a schema chooses seven like them."""
    for name, schema, columns in (
        ("AvailableNow, all columns", None, ()),
        ("AvailableNow, Kafka's columns", SEVEN, ()),
        ("AvailableNow, 3 columns", THREE, KAFKA_THREE),
    ):
        pair.compare(
            name,
            partial(available_now, pair, rows, schema),
            {"Kafka": partial(kafka_available_now, pair, rows, *columns)},
            rows,
            (1.2,),
        )


SECTIONS: dict[str, Callable[[Pair, int], None]] = {
    "reads": reads,
    "available": available,
    "sinks": sinks,
    "once": lambda pair, _: exactly_once(pair, EXACTLY_ONCE_ROWS),
    "live": lambda pair, _: live(pair),
}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_kafka")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--page", type=Path, help="write the table into this page")
    found = parser.parse_args()
    if unknown := set(found.sections) - SECTIONS.keys():
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    return found


def main() -> None:
    wanted, started = options(), time.monotonic()
    rows, sections = wanted.rows, wanted.sections or list(SECTIONS)
    try:
        parts, jars = find_kafka(), find_spark_source()
    except NoKafkaError as problem:
        print(f"skipped: {problem}")
        return
    with pairs(parts, jars, rows) as pair:
        make_topics(pair)
        if {"reads", "available"} & set(sections):
            fill(pair, "plain", full(pair.bench).select("keys", "body"))
        if "reads" in sections:
            fill(pair, "orders", full(pair.bench))
        print(f"{rows:,} rows, 100 B; k rows per CPU second of Spark and broker; k rows/s")
        print(f"{'':34}{'ours':>8}{'Kafka':>8}{'ratio':>8}{'goal':>7}{'ours/s':>11}{'Kafka/s':>8}")
        for name in sections:
            SECTIONS[name](pair, rows)
        seconds = time.monotonic() - started
        print(f"\nthe run took {seconds:.0f} s")
        if wanted.page is not None:
            write_table(wanted.page, table(pair, rows, seconds))


if __name__ == "__main__":
    main()
