"""Tests with Apache's own processes; `make interop` fetches the jars and runs them all.

`POCKETMQ_JAVA` names a directory with the jars of one RocketMQ release, `POCKETMQ_JAVA_PROGRAMS`
one where our Java programs are ready (see `ready.py`; else they are compiled), `POCKETMQ_GO` and
`POCKETMQ_NODE` the clients of those languages. What has no peer to talk to is left out of a run.
"""

import os
from pathlib import Path

import pytest

from tests.interop.jvm import Jars

LONGEST = (
    *("test_crowds_java.py", "test_tools_java.py", "test_spark_java.py", "test_clients_java.py"),
    *("test_side_by_side_java.py", "test_pop_own_java.py", "test_mixed_java.py"),
    *("test_groups_java.py", "test_push_java.py", "test_pop_java.py", "test_exchanges_java.py"),
)
"""Files in the order in which a parallel run begins with them, so that none is alone at the end."""
PEERS = {"java": "POCKETMQ_JAVA", "go": "POCKETMQ_GO", "node": "POCKETMQ_NODE"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests whose peer was not named, and of another line of RocketMQ; the longest first."""
    directory = os.environ.get("POCKETMQ_JAVA")
    line = Jars(Path(directory), Path()).line if directory else ""
    out = [item for item in items if not _has_peer(item, line)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in set(out)]
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


def _has_peer(item: pytest.Item, line: str) -> bool:
    for peer, variable in PEERS.items():
        if item.get_closest_marker(peer) and not os.environ.get(variable):
            return False
    only = item.get_closest_marker("line")
    return only is None or only.args[0] == line


@pytest.fixture(scope="session")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Jars:
    """Give the release to test with; the workers of a parallel run share what is compiled."""
    if made := os.environ.get("POCKETMQ_JAVA_PROGRAMS"):
        return Jars(Path(os.environ["POCKETMQ_JAVA"]), Path(made))
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root
    classes = shared / "classes"
    classes.mkdir(exist_ok=True)
    return Jars(Path(os.environ["POCKETMQ_JAVA"]), classes)
