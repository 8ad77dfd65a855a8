"""Of the pages that Spark and Java print, the one line that tells what to do."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

import pocketmq as mq
from pocketmq.errors import InvalidInput, PipelineFailed
from pocketmq.pipelines.copy import CopySettings, copy_topics
from pocketmq.pipelines.queries import begun, reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADD_PACKAGE = (
    "add its package by the setting spark.jars.packages "
    "(for s3a:// it is org.apache.hadoop:hadoop-aws)"
)
STREAM = "[STREAM_FAILED] Query [id = 5, runId = 6] terminated with exception: "
FAILED = "[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python perform latestOffset: "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{STREAM}{FAILED}pocketmq.errors.local.DataLost: all gone; look\nSQLSTATE: 38", "all gone; look"),
        ("Job aborted\n  pocketmq.errors.local.RowsNotSent: row 5\n\tat org.apache.X", "row 5"),
        (f"{STREAM}Traceback (most recent call last):\n  File \"x.py\"\n    f()\nValueError: no\nmore", "ValueError: no"),
        ("Parent path is not a directory: file:/x\n\tat org.apache.hadoop", "Parent path is not a directory: file:/x"),
        (
            "java.lang.RuntimeException: java.lang.ClassNotFoundException: Class org.S3A not found",
            f"Spark has no class org.S3A; {ADD_PACKAGE}",
        ),
        ("", "RuntimeError"),
    ],
)  # fmt: skip
def test_the_useful_line_is_found(text: str, reason: str) -> None:
    assert reason_of(RuntimeError(text)) == reason


def test_a_checkpoint_that_cannot_be_used_is_named(
    spark: "SparkSession", cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    to = cluster.create_topic(f"{topic}-to", queues=1)

    def copied(checkpoint: str | Path) -> None:
        settings = CopySettings(to_topic=to, once=True)
        copy_topics(
            spark, cluster.address, [topic], to_name_server=cluster.address,
            checkpoint=checkpoint, settings=settings,
        )  # fmt: skip

    (tmp_path / "file").write_text("in the way")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "metadata").write_text("torn")
    for place, reason in (
        (tmp_path / "file" / "x", "Parent path is not a directory"),
        (tmp_path / "torn", "Unrecognized token 'torn'"),
        ("s3a://lake/x", "Spark has no class org.apache.hadoop.fs.s3a.S3AFileSystem; add its"),
    ):
        with pytest.raises(InvalidInput, match=f"^cannot use checkpoint {place}: .*{reason}") as no:
            copied(place)
        assert "\n" not in str(no.value)
    other = spark.readStream.format("rate").load().writeStream.format("noop")
    other = other.option("checkpointLocation", str(tmp_path / "rate"))
    other.trigger(availableNow=True).start().awaitTermination(60)
    with pytest.raises(
        PipelineFailed, match=r"^pipeline copy failed: the checkpoint is of another"
    ):
        copied(tmp_path / "rate")


def test_a_query_that_cannot_start_for_another_reason_does_not_blame_its_checkpoint(
    spark: "SparkSession", tmp_path: Path
) -> None:
    counts = spark.readStream.format("rate").load().groupBy("value").count()
    writer = counts.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "new"))
    with pytest.raises(AnalysisException, match="Invalid streaming output mode"):
        begun(writer.outputMode("append").start, tmp_path / "new")
