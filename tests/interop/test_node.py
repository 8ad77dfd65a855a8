"""A Node client on our cluster; `POCKETMQ_NODE` names a directory whose `node_modules` hold it.

`npm install ali-ons@3 urllib@2`, run in an empty directory, makes such a one.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from tests.interop.jvm import Process

pytestmark = [pytest.mark.node, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parent / "node" / "client.js"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the program and the packages it needs."""
    installed = os.environ["POCKETMQ_NODE"]
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    directory = tmp_path_factory.mktemp("node")
    shutil.copy(PROGRAM, directory)
    (directory / "node_modules").symlink_to(Path(installed).absolute() / "node_modules")
    return directory


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    levels = {"messageDelayLevel": "1s 2s 3s 4s"}
    directory = tmp_path_factory.mktemp("data")
    with Cluster(data=directory, in_process=False, config=levels) as running:
        for topic in ("node", "node-large", "node-delayed"):  # this client makes none
            running.create_topic(topic, 4)
        yield running


def run(home: Path, cluster: Cluster, order: str) -> list[str]:
    with Process(["node", PROGRAM.name, order, cluster.address], home) as process:
        lines = process.wait_for_end()
    assert lines[-1:] == ["end"], lines
    return lines[:-1]


@pytest.fixture(scope="module")
def produced(home: Path, cluster: Cluster) -> list[str]:
    return run(home, cluster, "produce")


def test_it_sends(produced: list[str]) -> None:
    assert produced == ["sent SEND_OK node 32", "large SEND_OK", "delayed SEND_OK"]


@pytest.mark.usefixtures("produced")
@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("push", "push 20 20"),
        ("large", "large 20000"),
        ("delayed", "delayed [ 'later' ]"),
        ("tags", "tags 10 true"),
        ("sql", "sql größe 15 größe 16 größe 17 größe 18 größe 19"),
        ("retried", "retried 0 later; 1 later"),
        ("broadcast", "broadcast 20"),
    ],
)
def test_it_receives(home: Path, cluster: Cluster, order: str, said: str) -> None:
    assert run(home, cluster, order) == [said]
