"""Runs an ingestion: a stream from topics, written so that each batch can be repeated."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.utils import is_remote

from pocketmq.errors import InvalidInput, PipelineFailed
from pocketmq.model.names import check_consumer_group, check_topic
from pocketmq.pipelines.ingest.files import repair
from pocketmq.pipelines.ingest.shaping import check_day, saved_schema, shaped
from pocketmq.pipelines.places import DataPlace, LocalPlace, place_of
from pocketmq.pipelines.queries import begun, behind, reason_of, wait_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_NO_DAY = date(1970, 1, 1)
_UNAVAILABLE = {
    "delta": "Delta Lake 4.4.0 fails in Spark 4.3",
    "iceberg": "no release of Apache Iceberg supports Spark 4.2 or newer",
}
"""Formats that users ask for, and why they cannot be written."""


class IngestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How to ingest.

    `schema` is Spark's DDL or JSON, a file of either, `infer`, or None for bodies as they are.
    `day_from` selects the day of a message: `store`, `born`, or a column of the schema. `group` is
    a consumer group that the progress is committed to. `options` are further options of the source.
    `format` is `parquet`, the only one whose packages run in a Spark that the source runs in.
    """

    once: bool = False
    schema: str | None = None
    day_from: str = "store"
    starting: str = "earliest"
    group: str | None = None
    every: float = 5.0
    """Seconds between batches of a continuous run."""
    largest_batch: int | None = None
    options: Mapping[str, str] = {}
    format: str = "parquet"


class IngestProgress(msgspec.Struct, frozen=True):
    """The progress of a run."""

    batches: int
    rows: int
    bad: int
    seconds: float
    behind: int | None = None
    """Messages that are stored and not ingested, as of the last batch."""


class IngestResult(msgspec.Struct, frozen=True):
    """The result of a run."""

    place: str
    batches: int
    rows: int
    bad: int
    late: int
    """Rows whose day is before the latest day already ingested."""
    seconds: float


class _Counts:
    """Counters, written by the thread of `foreachBatch`, read by the waiting one."""

    def __init__(self, latest_day: date) -> None:
        self.batches = self.rows = self.bad = self.late = 0
        self.latest_day = latest_day


def ingest(
    spark: "SparkSession",
    name_server: str,
    topics: Sequence[str],
    place: str | Path,
    settings: IngestSettings | None = None,
    *,
    progress: Callable[[IngestProgress], None] | None = None,
    stop: threading.Event | None = None,
) -> IngestResult:
    """Copy topics to Parquet in a directory, each message once, resuming where it ended.

    `place` is a path, or an address of any file system that Spark reaches (`s3a://…`, `hdfs://…`).

    With `once` it ends when everything stored at the start is copied; else it runs until `stop` is
    set or Ctrl-C is pressed, which raises nothing. Raises `InvalidInput` for invalid settings,
    `PipelineFailed` if the stream fails.
    """
    settings = settings or IngestSettings()
    check_ingest(topics, settings)
    if is_remote():  # foreachBatch would run, and count, in a process of the server
        raise InvalidInput("ingest requires a classic Spark session, not Spark Connect")
    began, root = monotonic(), place_of(place, spark)
    options = {"nameServer": name_server, "subscribe": ",".join(topics), **settings.options}
    try:
        root.make()
        schema = saved_schema(root, settings.schema, spark, options)
    except OSError as problem:
        raise InvalidInput(f"cannot write to {place}: {problem.strerror}") from problem
    except PySparkException as problem:
        raise PipelineFailed("ingest", reason_of(problem)) from problem
    check_day(settings.day_from, schema)
    _clean_up(root)
    counts = _Counts(_latest_day(root))
    options |= {"startingOffsets": settings.starting}
    options |= {} if settings.group is None else {"groupId": settings.group}
    if settings.largest_batch is not None:
        options["maxOffsetsPerTrigger"] = str(settings.largest_batch)

    try:
        query = _start(
            spark, options, _BatchTarget(root, schema, settings.day_from, counts), settings
        )

        def tell() -> None:
            if progress is not None:
                spent, left = round(monotonic() - began, 3), behind(query)
                progress(IngestProgress(counts.batches, counts.rows, counts.bad, spent, left))

        wait_for(query, stop or threading.Event(), tell)
        tell()
    except PySparkException as problem:
        raise PipelineFailed("ingest", reason_of(problem)) from problem
    return IngestResult(
        str(place), counts.batches, counts.rows, counts.bad, counts.late,
        round(monotonic() - began, 3),
    )  # fmt: skip


def check_ingest(topics: Sequence[str], settings: IngestSettings) -> None:
    """Raise `InvalidInput` for invalid settings."""
    if not topics:
        raise InvalidInput("name at least one topic to ingest")
    for topic in topics:
        check_topic(topic)
    if settings.group is not None:
        check_consumer_group(settings.group)
    if settings.format in _UNAVAILABLE:
        reason = _UNAVAILABLE[settings.format]
        raise InvalidInput(f"format {settings.format} is not available: {reason}; use parquet")
    if settings.format != "parquet":
        raise InvalidInput(f"format {settings.format!r} is unknown; use parquet")


class _BatchTarget(msgspec.Struct, frozen=True):
    """Where and how batches are written."""

    root: DataPlace
    schema: Any
    day_from: str
    counts: _Counts


def _start(
    spark: "SparkSession", options: dict[str, str], place: _BatchTarget, settings: IngestSettings
) -> "StreamingQuery":
    stream = spark.readStream.format("rocketmq").options(**options).load()
    checkpoint = f"{place.root}/checkpoint"
    writer = stream.writeStream.foreachBatch(partial(_write, place))
    writer = writer.option("checkpointLocation", checkpoint)
    if settings.once:
        return begun(writer.trigger(availableNow=True).start, checkpoint)
    return begun(writer.trigger(processingTime=f"{settings.every} seconds").start, checkpoint)


def _write(place: _BatchTarget, batch: "DataFrame", number: int) -> None:
    """Write one batch.

    Dynamic partition overwrite by batch number makes it idempotent: after a crash Spark repeats the
    batch with the same number and messages, and it replaces its own files.
    """
    counts = place.counts
    good, bad, counted = shaped(batch, place.schema, place.day_from)
    rows, late, latest = _put(good, number, f"{place.root}/data", counts.latest_day)
    counts.rows += rows
    counts.late += late
    counts.latest_day = max(counts.latest_day, latest)
    if bad is not None and counted is not None and counted.get["bad"]:
        counts.bad += _put(bad, number, f"{place.root}/bad", _NO_DAY)[0]
    counts.batches += 1


def _put(frame: "DataFrame", number: int, place: str, latest: date) -> tuple[int, int, date]:
    """Write rows; return their number, the number of late ones, and the latest day."""
    seen = Observation()
    counted = frame.observe(
        seen,
        F.count(F.lit(1)).alias("rows"),
        F.count(F.when(F.col("day") < F.lit(latest), 1)).alias("late"),
        F.max("day").alias("latest"),
    )
    (
        counted.withColumn("batch", F.lit(number))
        .write.mode("overwrite")
        .option("partitionOverwriteMode", "dynamic")
        .option("compression", "zstd")
        .partitionBy("day", "topic", "batch")
        .parquet(place)
    )
    found = seen.get
    return int(found["rows"]), int(found["late"]), found["latest"] or _NO_DAY


def _clean_up(root: DataPlace) -> None:
    """Complete an interrupted compaction, and delete what an interrupted batch left."""
    for kind in ("data", "bad"):
        if isinstance(root, LocalPlace):
            repair(root.root / kind)
        for name in root.names(kind):
            if name.startswith(".spark-staging-"):
                root.remove(f"{kind}/{name}")


def _latest_day(root: DataPlace) -> date:
    """Return the latest day already ingested."""
    days = [_NO_DAY]
    for name in root.names("data"):
        if name.startswith("day="):
            with suppress(ValueError):
                days.append(date.fromisoformat(name.removeprefix("day=")))
    return max(days)
