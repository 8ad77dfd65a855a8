"""What is wrong is told in one line, before Spark is started."""

from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.cli import run

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr("pocketmq.spark.spark_session", started)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["ingest"], 2, "name at least one topic with -t"),
        (["copy"], 2, "name at least one topic with -t"),
        (["ingest", "-t", "a b"], 2, "the topic name 'a b' is not valid"),
        (["ingest", "-t", "orders"], 1, f"no name server answers at {NOBODY}"),
        (["copy", "-t", "orders", "--to", "127.0.0.1:2"], 1, f"no name server answers at {NOBODY}"),
        (["copy", "-t", "orders"], 2, "a topic cannot be copied to itself"),
        (["copy", "-t", "orders", "--to-topic", "x y"], 2, "the topic name 'x y' is not valid"),
        (["ingest", "-t", "orders", "--every", "often"], 2, "Invalid value for '--every'"),
        (["ingest", "-t", "orders", "--largest-batch", "0"], 2, "Invalid value for"),
        (["ingest", "-t", "orders", "--subscribe", "x"], 2, "No such option"),
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


def test_a_topic_that_is_not_there_is_named(
    cluster: mq.Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = ["-n", cluster.address, "-t", "nowhere"]
    assert run(["pipeline", "ingest", *source, "--to", str(tmp_path)]) == 1
    assert "nowhere" in capsys.readouterr().err
