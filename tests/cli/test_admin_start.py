"""Admin commands start fast: what they do not need is not imported."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from pocketmq import Cluster

HEAVY = [
    "numpy", "pocketmq.balance.allocation", "pocketmq.blocking", "pocketmq.broker",
    "pocketmq.client.push", "pocketmq.client.producer", "pocketmq.embedded", "pyspark", "rich",
]  # fmt: skip
PROGRAM = """
import sys
from pocketmq.cli import run
code = run(sys.argv[2:])
print([name for name in sys.argv[1].split() if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        running.create_topic("orders", queues=1)
        yield running


@pytest.mark.parametrize(
    "command",
    [
        "topicList", "topicStatus -t orders", "topicRoute -t orders", "clusterList",
        "consumerProgress", "printMsg -t orders", "statsAll", "getNamesrvConfig",
    ],
)  # fmt: skip
def test_a_command_imports_nothing_heavy(cluster: Cluster, command: str) -> None:
    name, *rest = command.split()
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PROGRAM,
            " ".join(HEAVY),
            "admin",
            name,
            "-n",
            cluster.address,
            *rest,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_a_list_of_commands_imports_none_of_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "asyncio pocketmq.admin pocketmq.client", "admin", "-h"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert "consumerProgress" in done.stdout
