"""Topics to Parquet: rows a second, and rows for each second of CPU, beside Parquet to Parquet.

python -m benchmarks.ingest [rows]

Bodies are JSON of about 100 bytes. `copied` reads the same columns from Parquet and writes them
again by Spark alone, in files by day and topic as the ingestion writes them. The broker is a
process of its own; its CPU counts in the last column. A row's time is the best of three runs.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks.spark import Bench, cluster
from pocketmq import Message, Producer
from pocketmq.pipelines.ingest import IngestSettings, ingest, ingested_values
from pocketmq.spark import spark_session
from pocketmq.spark.engine import stop_session

ROWS = 500_000
BATCH = 256
SCHEMA = "number BIGINT, customer STRING, amount DOUBLE, at TIMESTAMP"


def fill(address: str, rows: int) -> None:
    """Send orders with a tag and a key."""
    with Producer(address, group="bench") as producer:
        for first in range(0, rows, BATCH):
            producer.send_batch(
                [
                    Message("orders", body(number), tag="paid", keys=[f"A{number}"])
                    for number in range(first, min(first + BATCH, rows))
                ]
            )


def body(number: int) -> bytes:
    """Return an order as JSON."""
    text = '{"number": %d, "customer": "c%06d", "amount": %d.5, "at": "2026-11-15T10:00:%02dZ"}'
    return (text % (number, number % 5000, number % 900, number % 60)).encode()


def run(bench: Bench, schema: str | None, place: Path) -> None:
    """Print what an ingestion and a copy of its files cost."""
    turns = iter(range(100))

    def ingested() -> None:
        folder = place / f"in-{next(turns)}"
        settings = IngestSettings(once=True, schema=schema)
        assert ingest(bench.spark, bench.address, ["orders"], folder, settings).rows == bench.rows

    def copied() -> None:
        found = bench.spark.read.parquet(str(place / "in-0" / "data"))
        writer = found.write.mode("overwrite").option("compression", "zstd")
        writer.partitionBy("day", "topic", "batch").parquet(str(place / f"out-{next(turns)}"))

    name = "bodies as they are" if schema is None else "bodies to columns"
    found = bench.measure(f"{name}: ingested", ingested, bench.rows)
    assert len(ingested_values(place / "in-0", "queueOffset")) == bench.rows
    most = bench.measure(f"{name}: copied", copied, bench.rows)
    print(f"{'of copied':38}{found.wall / most.wall:12.2f}{found.cpu / most.cpu:10.2f}")


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    spark = spark_session("benchmarks", master="local[2]", config={"spark.driver.memory": "2g"})
    try:
        with cluster() as (address, broker), tempfile.TemporaryDirectory() as place:
            fill(address, rows)
            bench = Bench(spark, address, broker, rows)
            print(f"{'':38}{'rows/s':>12}{'k/CPU s':>10}{'+ broker':>10}")
            run(bench, None, Path(place) / "whole")
            run(bench, SCHEMA, Path(place) / "columns")
    finally:
        stop_session(spark)


if __name__ == "__main__":
    main()
