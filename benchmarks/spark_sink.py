"""DataFrames to topics: rows a second, and rows for each second of CPU, beside Parquet.

python -m benchmarks.spark_sink [rows]

The broker is a process of its own; its CPU counts in the last column. The rows lie in Spark's
cache. `counted` is a sink that counts rows and does nothing else, the most that Spark's Python API
gives; `parquet` is Spark's own. A row's time is the best of three runs.
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from benchmarks.spark import Bench, cluster
from pocketmq.spark import spark_session
from pocketmq.spark.engine import stop_session

ROWS = 500_000
BAR = 150_000
EXACTLY_ONCE_ROWS = 200_000


@dataclass
class Seen(WriterCommitMessage):
    rows: int


class Counting(DataSourceArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Seen:
        return Seen(sum(batch.num_rows for batch in iterator))


class Counted(DataSource):
    @classmethod
    def name(cls) -> str:
        return "counted"

    def writer(self, schema: StructType, overwrite: bool) -> Counting:  # noqa: ARG002, FBT001 - Spark's
        return Counting()


def save(frame: DataFrame, name: str, **options: str) -> None:
    frame.write.format(name).options(**options).mode("append").save()


def bodies(bench: Bench, size: int) -> DataFrame:
    padded = F.rpad(F.col("id").cast("string"), size, "x").cast("binary")
    return bench.spark.range(0, bench.rows, 1, 2).select(padded.alias("body"))


def full(bench: Bench) -> DataFrame:
    number = F.col("id").cast("string")
    return bench.spark.range(0, bench.rows, 1, 2).select(
        F.lit("orders").alias("topic"),
        F.rpad(number, 100, "x").cast("binary").alias("body"),
        F.lit("paid").alias("tags"),
        F.concat(F.lit("A"), number).alias("keys"),
        F.create_map(
            F.lit("region"), F.lit("eu"), F.lit("shop"), F.lit("7"), F.lit("n"), number
        ).alias("properties"),
    )


def stream(bench: Bench, folder: Path, schema: StructType, **options: str) -> None:
    """Write a stream of one micro-batch."""
    lines = bench.spark.readStream.schema(schema).parquet(str(folder))
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            lines.writeStream.format("rocketmq")
            .options(nameServer=bench.address, topic="orders", **options)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


def streams(bench: Bench, place: Path) -> None:
    """Print what streams cost; the rows lie in files."""
    for name, rows, options in (
        ("stream of one batch, 100 B", bench.rows, {}),
        ("a smaller batch", EXACTLY_ONCE_ROWS, {}),
        ("the same, exactly once", EXACTLY_ONCE_ROWS, {"exactlyOnce": "true"}),
    ):
        folder = place / name
        frame = bodies(bench, 100).limit(rows).repartition(2)
        frame.write.parquet(str(folder))
        bench.measure(name, partial(stream, bench, folder, frame.schema, **options), rows)
    print("a query takes its time to start and end; exactly once sends each batch twice")


def measure(bench: Bench, name: str, frame: DataFrame, place: str) -> None:
    cached = frame.cache()
    cached.count()
    sink = {"nameServer": bench.address, "topic": "orders"}
    found = bench.measure(f"{name}: rocketmq", lambda: save(cached, "rocketmq", **sink), bench.rows)
    most = bench.measure(f"{name}: counted", lambda: save(cached, "counted"), bench.rows)
    bench.measure(f"{name}: parquet", lambda: save(cached, "parquet", path=place), bench.rows)
    print(
        f"{'':38}{found.cpu / most.cpu:11.0%} of counted, {found.cpu / BAR:.1f} × the bar for each "
        "CPU second"
    )
    cached.unpersist()


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    spark = spark_session("benchmarks", master="local[2]", config={"spark.driver.memory": "2g"})
    spark.dataSource.register(Counted)
    try:
        with cluster() as (address, broker), tempfile.TemporaryDirectory() as place:
            bench = Bench(spark, address, broker, rows)
            print(f"{'':38}{'rows/s':>12}{'k/CPU s':>10}{'+ broker':>10}")
            measure(bench, "body of 100 B", bodies(bench, 100), f"{place}/a")
            measure(bench, "body of 1 KiB", bodies(bench, 1024), f"{place}/b")
            measure(bench, "all columns, 100 B", full(bench), f"{place}/c")
            streams(bench, Path(place))
    finally:
        stop_session(spark)


if __name__ == "__main__":
    main()
