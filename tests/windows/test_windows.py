"""Clients and the command work on a Python that lacks what Windows lacks; servers say no."""

import subprocess
import sys
from pathlib import Path

import pytest

from pocketmq import Cluster, Message, Producer

ROOT = Path(__file__).parents[2]


def on_windows(module: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.windows.as_on_windows", module, *arguments]
    return subprocess.run(
        command, cwd=ROOT, input=given, capture_output=True, text=True, check=False
    )


def pocketmq(*arguments: str, given: str = "") -> str:
    done = on_windows("pocketmq", *arguments, given=given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_clients_send_and_receive_in_every_way(rocketmq: Cluster) -> None:
    done = on_windows("tests.windows.clients", rocketmq.address)
    assert done.stdout.splitlines() == [
        "pulled sent submitted", "pushed sent", "stopped", "awaited sent"
    ], done.stderr  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_produces_consumes_and_administers(
    rocketmq: Cluster, rocketmq_topic: str
) -> None:
    at = ("-n", rocketmq.address)
    pocketmq("produce", *at, "-t", rocketmq_topic, given="one\ntwo\n")
    read = pocketmq(
        "consume", *at, "-t", rocketmq_topic, "-g", "readers", "--from", "first", "--count", "2"
    )
    assert sorted(line.split()[-1] for line in read.splitlines()) == ["one", "two"]
    assert rocketmq_topic in pocketmq("admin", "topicList", *at)
    assert "spread 0" in pocketmq("allocate", "--topic", "orders:a*4", "--members", "2")


def test_messages_migrate(rocketmq: Cluster, tmp_path: Path) -> None:
    with Cluster() as target, Producer(rocketmq.address, group="shop") as producer:
        producer.send(Message("moves", b"x"))
        where = ("-n", rocketmq.address, "--to", target.address, "--topic", "moves")
        pocketmq("migrate", "copy", *where, "--state", str(tmp_path / "state"))
        assert [message.body for message in target.messages("moves")] == [b"x"]


@pytest.mark.parametrize("server", ["up", "broker", "namesrv"])
def test_a_server_says_where_it_runs(server: str) -> None:
    done = on_windows("pocketmq", server)
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr == (
        "pocketmq: a server cannot start: servers run on Linux and macOS; on Windows use WSL or a "
        "container\n"
    )


def test_a_cluster_in_a_program_says_it_too() -> None:
    done = on_windows("tests.windows.cluster")
    assert "CannotStart: a cluster cannot start: servers run on Linux and macOS" in done.stderr
