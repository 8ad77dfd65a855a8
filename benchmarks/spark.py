"""Topics to DataFrames: rows a second, and rows for each second of CPU, beside what Spark can do.

python -m benchmarks.spark [rows]

The broker is a process of its own; its CPU counts in the last column. `synthetic` is a data source
that makes the same columns from memory, the most that Spark's Python API gives; `parquet` is
Spark's own. All run in one session of two cores, tuned as `spark_session` does it. A row's time is
the best of three runs; the micro-batches' the median. What is compared runs in turns, six times,
after two runs of each that do not count: Java compiles for a while, and who came first would pay
for that.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from benchmarks._spark_cpu import spark_cpu, tree_cpu
from benchmarks._synthetic_source import Synthetic
from pocketmq import Message, Producer
from pocketmq.spark import spark_session
from pocketmq.spark.engine import java_process, stop_session

ROWS = 1_000_000
RUNS = 3
THREE = "queueId int, queueOffset long, body binary"
BATCH = 256


@contextmanager
def cluster() -> Iterator[tuple[str, int]]:
    """Run a cluster in a process of its own; give its address and its process id."""
    command = [sys.executable, "-m", "benchmarks._cluster_process", "fileReservedBytes=4000000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[1], process.pid
        finally:
            process.terminate()


def fill(address: str, rows: int, body: int) -> None:
    """Send messages with a tag, a key and three properties."""
    content = os.urandom(body)
    with Producer(address, group="bench") as producer:
        for first in range(0, rows, BATCH):
            producer.send_batch(
                [
                    Message(
                        "orders",
                        content,
                        tag="paid",
                        keys=[f"A{number}"],
                        properties={"region": "eu", "shop": "7", "n": str(number)},
                    )
                    for number in range(first, min(first + BATCH, rows))
                ]
            )


class Rate(NamedTuple):
    """Rows a second, for each second of Spark's CPU, and of the broker's too."""

    wall: float
    cpu: float
    all_cpu: float


class Bench:
    """One session, one broker, one table of results."""

    def __init__(self, spark: SparkSession, address: str, broker: int, rows: int) -> None:
        self.spark, self.address, self.broker, self.rows = spark, address, broker, rows
        self.java = java_process(spark)

    def read(self, schema: str | None = None) -> DataFrame:
        reader = self.spark.read.format("rocketmq").option("nameServer", self.address)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.option("subscribe", "orders").load()

    def synthetic(self, body: int, schema: str | None = None) -> DataFrame:
        reader = self.spark.read.format("synthetic").options(rows=self.rows, body=body)
        return (reader.schema(schema) if schema is not None else reader).load()

    def measure(self, name: str, work: Callable[[], None], rows: int) -> Rate:
        """Print a row, and give it."""
        (found,) = self.compare({name: work}, rows)
        return found

    def compare(self, works: dict[str, Callable[[], None]], rows: int) -> list[Rate]:
        """Print a row for each, run in turns, and give them."""
        turns = RUNS
        if len(works) > 1:
            turns = 2 * RUNS
            for work in (*works.values(), *works.values()):
                work()
        runs = [[self._once(work, rows) for work in works.values()] for _ in range(turns)]
        found = [Rate(*map(max, zip(*each, strict=True))) for each in zip(*runs, strict=True)]
        for name, rate in zip(works, found, strict=True):
            print(
                f"{name:38}{rate.wall:12,.0f}{rate.cpu / 1e3:10,.0f}{rate.all_cpu / 1e3:10,.0f}",
                flush=True,
            )
        return found

    def _once(self, work: Callable[[], None], rows: int) -> Rate:
        before, served = spark_cpu(self.java), tree_cpu(self.broker)
        started = time.perf_counter()
        work()
        wall = time.perf_counter() - started
        spent = spark_cpu(self.java) - before
        return Rate(rows / wall, rows / spent, rows / (spent + tree_cpu(self.broker) - served))

    def noop(self, frame: DataFrame) -> None:
        frame.write.format("noop").mode("overwrite").save()

    def stream(self, **options: Any) -> Any:
        reader = self.spark.readStream.format("rocketmq").option("nameServer", self.address)
        reader = reader.option("startingOffsets", "earliest").option("subscribe", "orders")
        return reader.options(**options).load().writeStream.format("noop")

    def available_now(self, limit: int | None = None) -> None:
        options = {} if limit is None else {"maxOffsetsPerTrigger": str(limit)}
        with tempfile.TemporaryDirectory() as checkpoint:
            writer = self.stream(**options).option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            assert sum(p["numInputRows"] for p in query.recentProgress) == self.rows

    def micro_batches(self, count: int) -> None:
        with (
            tempfile.TemporaryDirectory() as checkpoint,
            Producer(self.address, group="bench") as producer,
        ):
            reader = self.spark.readStream.format("rocketmq").option("nameServer", self.address)
            frame = reader.option("subscribe", "live").option("startingOffsets", "latest").load()
            writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
            query = writer.start()
            query.processAllAvailable()
            for _ in range(count + 5):
                producer.send_batch([Message("live", b"x" * 100)] * 10)
                query.processAllAvailable()
            took = [
                p["durationMs"]["triggerExecution"]
                for p in query.recentProgress
                if p["numInputRows"] == 10
            ][5:]
            query.stop()
        print(
            f"micro-batch of 10 rows, ms: median {median(took):.0f}, least {min(took)}, "
            f"of {len(took)}",
            flush=True,
        )


def read_all(bench: Bench, schema: str | None) -> None:
    bench.noop(bench.read(schema))


def make_all(bench: Bench, body: int, schema: str | None) -> None:
    bench.noop(bench.synthetic(body, schema))


def run(bench: Bench, body: int, parquet: str) -> None:
    """Print the table for bodies of one size."""
    rows = bench.rows
    fill(bench.address, rows, body)
    print(f"\n{body} B bodies, {rows:,} rows")
    print(f"{'':38}{'rows/s':>12}{'k/cpu-s':>10}{'+ broker':>10}")
    for name, schema in (("all columns", None), ("3 columns", THREE)):
        ours, most = bench.compare(
            {
                f"read, {name}": partial(read_all, bench, schema),
                f"synthetic, {name}": partial(make_all, bench, body, schema),
            },
            rows,
        )
        ratios = [mine / best for mine, best in zip(ours, most, strict=True)]
        print(f"{'of synthetic':38}{ratios[0]:12.2f}{ratios[1]:10.2f}{ratios[2]:10.2f}", flush=True)
    bench.read().write.mode("overwrite").parquet(parquet)
    stored = bench.spark.read.parquet(parquet)
    bench.measure("parquet, all columns", lambda: bench.noop(stored), rows)
    bench.measure("stream, available now", bench.available_now, rows)
    bench.measure("stream, 200,000 a trigger", lambda: bench.available_now(200_000), rows)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    started = time.perf_counter()
    spark = spark_session("pocketmq benchmark", master="local[2]")
    try:
        spark.dataSource.register(Synthetic)
        spark.range(1).count()
        print(f"session and first query: {time.perf_counter() - started:.1f} s")
        for body in (100, 1024):
            with cluster() as (address, broker), tempfile.TemporaryDirectory() as parquet:
                bench = Bench(spark, address, broker, rows)
                run(bench, body, parquet)
                if body == 100:
                    bench.micro_batches(40)
    finally:
        stop_session(spark)


if __name__ == "__main__":
    main()
