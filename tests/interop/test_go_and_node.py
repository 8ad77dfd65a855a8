"""Unmodified Go and Node clients on our cluster.

Needs what they are built with, so nothing runs unless asked for:
`POCKETMQ_GO` names the program built from `go/main.go`, `POCKETMQ_NODE` a folder with the
`node_modules` that `node/client.js` wants. Both files say how.
"""

import os
import subprocess
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster

HERE = Path(__file__).parent
GO = os.environ.get("POCKETMQ_GO", "")
NODE = os.environ.get("POCKETMQ_NODE", "")


def run(command: list[str], folder: Path) -> list[str]:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("ok ")]


@pytest.mark.skipif(not GO, reason="POCKETMQ_GO is not set")
@pytest.mark.timeout(180)
def test_the_go_client_sends_and_consumes_in_each_of_its_ways(tmp_path: Path) -> None:
    with Cluster(in_process=False) as cluster:
        told = run([GO, cluster.address], tmp_path)
    for way in ("ok send sync", "ok send async", "ok batch", "ok gocg 140", "ok gocgorder 140"):
        assert way in told
    assert "ok gocgtag 10" in told


@pytest.mark.skipif(not NODE, reason="POCKETMQ_NODE is not set")
@pytest.mark.timeout(180)
def test_the_node_client_sends_and_consumes(tmp_path: Path) -> None:
    program = tmp_path / "client.js"
    program.write_text((HERE / "node" / "client.js").read_text())
    (tmp_path / "node_modules").symlink_to(Path(NODE) / "node_modules")
    with Cluster(in_process=False) as cluster:
        cluster.create_topic("nodetopic", 4)  # this client makes no topics
        told = run(["node", str(program), cluster.address], tmp_path)
    assert told == ["ok sent 20", "ok consumed 20"]
