"""Which Python Spark's processes run on, and which modules they search for."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pocketmq.spark.worker_python import VARIABLE, choose_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN = "import sys; print(sys.executable, *sys.argv[1:], *sys.path, sep='\\n')"


def test_a_local_session_starts_this_python_without_spark_s_jar_on_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    choose_python(local=True)
    mine = [str(tmp_path / "a b"), str(tmp_path / "own*.jar")]
    jar = str(tmp_path / "jars" / "spark-core_2.13-4.3.0.jar")
    shown = subprocess.run(
        [os.environ[VARIABLE], "-c", SHOWN, "x y", "*"],
        env=os.environ | {"PYTHONPATH": ":".join([jar, *mine])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert shown[:3] == [sys.executable, "x y", "*"]
    assert [path for path in shown if path.startswith(str(tmp_path))] == mine


def test_a_cluster_gets_this_python_itself_and_a_named_one_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    choose_python(local=True)
    script = os.environ[VARIABLE]
    assert script != sys.executable
    choose_python(local=True)
    assert os.environ[VARIABLE] == script
    choose_python(local=False)
    assert os.environ[VARIABLE] == sys.executable
    monkeypatch.setenv(VARIABLE, "/opt/python")
    choose_python(local=True)
    assert os.environ[VARIABLE] == "/opt/python"


def test_workers_search_no_jar(spark: "SparkSession") -> None:
    def searched(_: int) -> list[str]:
        return [sys.executable, *sys.path]

    (found,) = spark.sparkContext.parallelize([1], 1).map(searched).collect()
    assert found[0] == sys.executable
    assert not [path for path in found if path.endswith(".jar")]
