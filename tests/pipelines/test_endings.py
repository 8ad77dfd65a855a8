"""Ctrl-C and SIGTERM while Spark starts: the command ends at once, in silence, and leaves nobody."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import pocketmq as mq
from tests import server_process
from tests.early import ENVIRONMENT
from tests.pipelines.test_processes import started, wait_for

PATIENCE = 60.0


def started_by(process: int) -> set[int]:
    """List the processes that a process has started, and so on."""
    found: set[int] = set()
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            new = set(map(int, children.read_text().split()))
        except OSError:
            continue
        found |= new.union(*map(started_by, new))
    return found


def runs_spark(process: int) -> bool:
    return "SparkSubmit" in server_process.command_line(process)


def is_over(process: int) -> bool:
    """Return whether a process has ended; one that nobody has asked for yet counts."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def ended_while_starting(command: list[str], number: int) -> tuple[int, str, str]:
    """Send a signal to a command; Ctrl-C, as a terminal does, to all it has started, too."""
    with started(ENVIRONMENT, command) as child:
        wait_for(child, lambda: any(map(runs_spark, started_by(child.pid))))
        family = started_by(child.pid)
        if number == signal.SIGINT:
            os.killpg(child.pid, number)
        else:
            child.send_signal(number)
        said, wrong = child.communicate(timeout=PATIENCE)
    server_process.wait_for(lambda: all(map(is_over, family)), "all to be over", PATIENCE)
    return child.returncode, said, wrong


@pytest.mark.parametrize(
    ("number", "code", "pipeline"),
    [
        (signal.SIGINT, 130, ["ingest", "--to"]),
        (signal.SIGTERM, 143, ["health", "--html"]),
    ],
)
def test_a_signal_while_spark_starts_ends_all_in_silence(
    number: int, code: int, pipeline: list[str], cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    """A master that never answers: Spark is still starting, however late the signal comes."""
    command = [*pipeline, str(tmp_path / "out"), "-n", cluster.address]
    command += ["-t" if pipeline[0] == "ingest" else "--events-topic", topic]
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        command += ["--master", f"spark://127.0.0.1:{deaf.getsockname()[1]}"]
        exit_code, said, wrong = ended_while_starting(command, number)
    assert (exit_code, said) == (0, f"ended with {code}\n")
    assert [line for line in wrong.splitlines() if line and not line.startswith("NOTE: ")] == []


def test_what_was_there_before_is_not_killed() -> None:
    """A command that gives up ends what it has started, not what its caller has."""
    program = """
import os, signal, subprocess, sys, threading
from pocketmq.cli.pipeline.starting import InterruptHandler, started_spark
import pocketmq.spark
mine = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
def never(*_, **__):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as its:
        os.kill(os.getpid(), signal.SIGTERM)
        raise SystemExit(f"its ended with {its.wait()}")
pocketmq.spark.spark_session = never
try:
    with started_spark("test", "local", InterruptHandler()):
        print("started")
except RuntimeError as ended:
    print(ended.exit_code, mine.poll(), signal.getsignal(signal.SIGTERM).name)
mine.kill()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("143 None SIG_DFL\n", "")
