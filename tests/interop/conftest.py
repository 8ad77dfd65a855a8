"""Tests with Apache's own processes; `make interop` fetches the jars and runs them all.

`POCKETMQ_JAVA` names a directory with the jars of a RocketMQ release, or several as PATH does;
`POCKETMQ_JAVA_PROGRAMS` those where our Java programs are ready for each (see `ready.py`; else they
are compiled), `POCKETMQ_GO` and `POCKETMQ_NODE` the clients of those languages. What has no peer to
talk to is left out of a run; tests with Java's processes run with each release.
"""

import os
import re
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.interop.jvm import Jars

HERE = Path(__file__).parent
LONGEST = (
    *("test_side_by_side_java", "test_sticky_java", "test_crowds_java.py::.*java-java"),
    *("test_migrate_java", "test_spark_java"),
    *("test_clients_java", "test_crowds_java.py::.*ours-java", "test_tools_java.py::.*java"),
    *("test_crowds_java.py::.*java-ours", "test_pop_own_java"),
    *("test_exchanges_java.py::.*java", "test_crowds_java.py::.*ours-ours", "test_mixed_java"),
    *("test_groups_java", "test_push_java", "test_pop_java", "test_tools_java", "test_rows_java"),
    *("test_guarded_own_java", "test_dashboard_java"),
)
"""What a parallel run begins with, so that none is alone at the end, nor all crowds at once."""
PEERS = {"java": "POCKETMQ_JAVA", "go": "POCKETMQ_GO", "node": "POCKETMQ_NODE"}


@cache
def _releases() -> list[Jars]:
    """Return the releases to test with; no program is ready if it was not said where.

    The same objects each time: pytest makes a fixture anew for a parameter that is another object.
    """
    places = os.environ.get("POCKETMQ_JAVA", "").split(os.pathsep)
    ready = os.environ.get("POCKETMQ_JAVA_PROGRAMS", "").split(os.pathsep)
    pairs = zip_longest(filter(None, places), filter(None, ready), fillvalue="")
    return [Jars(Path(place), Path(programs)) for place, programs in pairs]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with Java's processes with each release."""
    if "jars" in metafunc.fixturenames:
        found = _releases()
        names = [release.version for release in found]
        metafunc.parametrize("jars", found, indirect=True, ids=names, scope="session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests whose peer was not named, and of another line of RocketMQ; the longest first."""
    lines = {release.line for release in _releases()}
    files = {path for path in {item.path for item in items} if HERE in path.parents}
    ours = [item for item in items if item.path in files]
    out = {item for item in ours if not _has_peer(item, lines)}
    if out:
        config.hook.pytest_deselected(items=[item for item in ours if item in out])
        items[:] = [item for item in items if item not in out]
    places = {item: _place(item.nodeid) for item in ours}
    items.sort(key=lambda item: places.get(item, len(LONGEST)))


def _place(test: str) -> int:
    """Return the place of a test in a run."""
    found = (place for place, name in enumerate(LONGEST) if re.search(name, test))
    return next(found, len(LONGEST))


def _has_peer(item: pytest.Item, lines: set[str]) -> bool:
    for peer, variable in PEERS.items():
        if item.get_closest_marker(peer) and not os.environ.get(variable):
            return False
    if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
        release = item.callspec.params.get("jars")
        lines = {release.line} if isinstance(release, Jars) else lines
    only = item.get_closest_marker("line")
    return only is None or only.args[0] in lines


@pytest.fixture(scope="session")
def jars(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Jars:
    """Return the release to test with; the workers of a parallel run share what is compiled."""
    release: Jars = request.param
    if release.programs.exists():
        return release
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root
    classes = shared / f"classes-{release.version}"
    classes.mkdir(exist_ok=True)
    return Jars(release.directory, classes)
