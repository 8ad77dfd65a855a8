"""`pocketmq pipeline ingest` as a process that is killed, run again, and stopped by Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import dataset

import pocketmq as mq

PATIENCE = 150.0


def start(cluster: mq.Cluster, topic: str, place: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pocketmq.cli", "pipeline", "ingest", "-n", cluster.address]
    return subprocess.Popen(
        [
            *command,
            "-t",
            topic,
            "--to",
            str(place),
            "--master",
            "local[2]",
            "--every",
            "0.1",
            *more,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def committed(place: Path) -> int:
    """Count the batches that are done."""
    return sum(path.name.isdigit() for path in place.glob("checkpoint/commits/*"))


def bodies(place: Path) -> list[int]:
    files = dataset.dataset(place / "data", format="parquet", partitioning="hive")
    return sorted(int(body) for body in files.to_table(columns=["body"]).column("body").to_pylist())


@pytest.mark.timeout(400)
def test_a_killed_run_is_gone_on_with_and_ctrl_c_ends_the_next_in_order(
    cluster: mq.Cluster, topic: str, tmp_path: Path
) -> None:
    with mq.Producer(cluster.address, group="shop") as producer:
        for first in range(0, 2000, 100):
            producer.send_batch([mq.Message(topic, b"%d" % n) for n in range(first, first + 100)])
    killed = start(cluster, topic, tmp_path, "--largest-batch", "100")
    wait_for(lambda: committed(tmp_path) >= 2)
    os.killpg(killed.pid, signal.SIGKILL)  # the driver and Java
    killed.communicate()
    assert committed(tmp_path) < 20
    again = start(cluster, topic, tmp_path)
    wait_for(lambda: len(set(bodies(tmp_path))) == 2000)
    os.killpg(again.pid, signal.SIGINT)
    said, wrong = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, wrong
    assert "rows in" in said
    assert f"batches to {tmp_path / 'data'} in" in said
    assert "Traceback" not in wrong
    assert bodies(tmp_path) == list(range(2000))
