"""What is wrong is told in one line, before Spark is started."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

import pocketmq as mq
from pocketmq.cli import run
from pocketmq.cli.pipeline.starting import _log_level, debug_option, spark_errors
from pocketmq.errors import InvalidInput, PipelineFailed
from pocketmq.pipelines.copy import shared_broker
from pocketmq.spark.engine import LOG_LEVEL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr("pocketmq.spark.spark_session", started)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["ingest"], 2, "no topic; give at least one with -t"),
        (["copy"], 2, "no topic; give at least one with -t"),
        (["ingest", "-t", "a b"], 2, "invalid topic name 'a b'"),
        (["ingest", "-t", "orders"], 1, f"no name server responds at {NOBODY}"),
        (
            ["copy", "-t", "orders", "--to", "127.0.0.1:2"],
            1,
            f"no name server responds at {NOBODY}",
        ),
        (["copy", "-t", "orders"], 2, "a topic cannot be copied to itself"),
        (["copy", "-t", "orders", "--to-topic", "x y"], 2, "invalid topic name 'x y'"),
        (["ingest", "-t", "orders", "-g", "bad group"], 2, "invalid group name 'bad group'"),
        (["copy", "-t", "a", "--to-topic", "b", "-g", "bad group"], 2, "invalid group name"),
        (["ingest", "-t", "orders", "-g", ""], 2, "invalid group name"),
        (["ingest", "-t", "orders", "--every", "often"], 2, "Invalid value for '--every'"),
        (["ingest", "-t", "orders", "--largest-batch", "0"], 2, "Invalid value for"),
        (["ingest", "-t", "orders", "--subscribe", "x"], 2, "No such option"),
        (["ingest", "-t", "a", "--format", "iceberg"], 2, "format iceberg is not available: no"),
        (["ingest", "-t", "a", "--format", "delta"], 2, "format delta is not available: Delta"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *rest = arguments
    place = {"ingest": "--to", "copy": "--checkpoint"}[name]
    assert run(["pipeline", name, "-n", NOBODY, place, str(tmp_path), *rest]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"pocketmq: {told}")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("to_topic", [[], ["--to-topic", "SELF"]])
def test_a_cluster_by_another_name_is_the_same_cluster(
    to_topic: list[str],
    cluster: mq.Cluster,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Copied to itself a topic would never end."""
    elsewhere = cluster.address.replace("127.0.0.1", "localhost")
    assert elsewhere != cluster.address
    ends = ["-n", cluster.address, "--to", elsewhere, "-t", topic]
    ends += [topic if word == "SELF" else word for word in to_topic]
    assert run(["pipeline", "copy", *ends, "--checkpoint", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("pocketmq: a topic cannot be copied to itself: broker broker-")
    assert said.count("\n") == 1


def test_topics_are_apart_by_name_namespace_or_brokers(cluster: mq.Cluster, topic: str) -> None:
    here = mq.ClientOptions(name_servers=cluster.address)
    elsewhere = mq.ClientOptions(name_servers=cluster.address.replace("127.0.0.1", "localhost"))
    within = mq.ClientOptions(name_servers=cluster.address, namespace="shop")
    assert shared_broker(here, elsewhere, topic) is not None
    assert shared_broker(here, elsewhere, "nowhere") is None
    assert shared_broker(here, within, topic) is None
    with mq.Cluster() as other:
        other.create_topic(topic, 1)
        assert shared_broker(here, mq.ClientOptions(name_servers=other.address), topic) is None


def test_a_topic_that_is_not_there_is_named(
    cluster: mq.Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = ["-n", cluster.address, "-t", "nowhere"]
    assert run(["pipeline", "ingest", *source, "--to", str(tmp_path)]) == 1
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "level"), [([], "off"), (["--debug"], None)])
def test_spark_logs_nothing_unless_asked_for(given: list[str], level: str | None) -> None:
    """The level is for a Java that starts now; later ones of the same process are asked anew."""
    seen = []

    @click.command()
    @debug_option
    def start() -> None:
        with _log_level():
            seen.append(os.environ.get(LOG_LEVEL))

    start.main(given, standalone_mode=False)
    assert seen == [level]
    assert LOG_LEVEL not in os.environ


def test_an_error_of_spark_is_one_line(spark: "SparkSession") -> None:
    with pytest.raises(PipelineFailed) as failed, spark_errors("health"):
        spark.sql("SELECT nothing").collect()
    assert str(failed.value).startswith("pipeline health failed: [UNRESOLVED_COLUMN")
    assert "\n" not in str(failed.value)
    with pytest.raises(PipelineFailed, match="failed: no groups") as failed, spark_errors("fleet"):
        spark.sparkContext.parallelize([1]).map(_refused).collect()
    assert "\n" not in str(failed.value)


def _refused(_: int) -> None:
    raise InvalidInput("no groups")
