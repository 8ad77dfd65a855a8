"""Tests that share what is costly stay together in a parallel run, and others do not wait for them."""

from pathlib import Path

import pytest

from tests.grouping import group_of, is_patient

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[1]
CROWDS = "tests/interop/test_crowds_java.py::test_shares_are_javas_after_each_change[java-ours]"


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/model/test_route.py::test_a[x::y/z]", "tests/model/test_route.py"),
        ("tests/spark/test_source.py::test_a", "spark"),
        ("tests/pipelines/test_copy.py::test_a", "spark"),
        ("tests/spark/test_standalone.py::test_a", "spark"),
        ("tests/dashboard/test_pages.py::test_a", "dashboard"),
        (CROWDS, CROWDS),
        ("tests/virtual/test_offsets.py::test_a[1]", "tests/virtual/test_offsets.py::test_a[1]"),
        (
            "tests/interop/test_tools_java.py::test_the_same_lines[java-5.5.0-clusterList -m]",
            "tests/interop/test_tools_java.py 5.5.0 java",
        ),
        (
            "tests/interop/test_rows_java.py::test_both_hear_both[java-ours-4.9.7]",
            "tests/interop/test_rows_java.py 4.9.7 java-ours",
        ),
        (
            "tests/interop/test_pull_java.py::test_a[4.9.7-x]",
            "tests/interop/test_pull_java.py 4.9.7",
        ),
    ],
)
def test_a_test_belongs_to_a_group(test: str, group: str) -> None:
    assert group_of(test) == group


CONFTEST = """
    import pytest
    from tests.grouping import Together

    def pytest_xdist_make_scheduler(config, log):
        config.option.loadscopereorder = False
        return Together(config, log)
    """
BODY = """
    import os, pathlib, pytest

    @pytest.mark.parametrize("n", range(20))
    def test_one(n):
        with pathlib.Path("ran").open("a") as ran:
            print(pathlib.Path(__file__).name, os.environ["PYTEST_XDIST_WORKER"], file=ran)
    """

WAITING = f"""
    import time
    {BODY}
    @pytest.fixture(autouse=True)
    def the_patient_have_run():
        while not pathlib.Path("ran").exists() or pathlib.Path("ran").read_text().count("\\n") < 40:
            time.sleep(0.01)
    """
DEADLY = """
    import os, pytest

    @pytest.mark.parametrize("n", range(5))
    def test_one(n):
        if n == 2:
            os._exit(1)
    """


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(CONFTEST)
    return pytester


def ran(project: pytest.Pytester, workers: int, count: int) -> list[str]:
    """Run the tests of a project; give the file and the worker of each."""
    words = ("-p", "xdist", "-n", str(workers), "--dist", "loadgroup")
    project.runpytest_subprocess(*words).assert_outcomes(passed=count)
    lines = (project.path / "ran").read_text().splitlines()
    assert len(lines) == count
    return lines


def test_patient_groups_have_a_worker_of_their_own(project: pytest.Pytester) -> None:
    project.makepyfile(test_a=WAITING, test_b=WAITING)
    project.mkdir("virtual")
    for name in ("test_v", "test_w"):
        project.makepyfile(**{f"virtual/{name}": BODY})
    worker = dict(line.split() for line in ran(project, 3, 80))
    assert worker["test_v.py"] not in (worker["test_a.py"], worker["test_b.py"])


def test_all_workers_take_whole_groups_where_none_is_patient(project: pytest.Pytester) -> None:
    """Held against pytest-xdist itself, whose own marks for groups do nothing with pytest 9.2."""
    project.makepyfile(test_a=BODY, test_b=BODY, test_c=BODY)
    places = {tuple(line.split()) for line in ran(project, 3, 60)}
    files, workers = zip(*places, strict=True)
    assert len(places) == len(set(files)) == len(set(workers)) == 3


@pytest.mark.parametrize("workers", [1, 3])
def test_a_worker_that_dies_costs_the_test_it_died_of_and_the_run_ends(
    project: pytest.Pytester, workers: int
) -> None:
    """Held against pytest-xdist itself, whose run would not end."""
    project.makepyfile(test_a=BODY, test_b=DEADLY, test_c=BODY, test_d=DEADLY)
    words = ("-p", "xdist", "-n", str(workers), "--dist", "loadgroup")
    result = project.runpytest_subprocess(*words, timeout=100)
    result.assert_outcomes(passed=48, failed=2)
    result.stdout.fnmatch_lines(["FAILED test_b.py::test_one[[]2[]] - worker 'gw* crashed while*"])


@pytest.mark.parametrize(
    ("test", "patient"),
    [
        ("tests/virtual/test_schedules.py::test_a[0]", True),
        ("tests/protocol/bodies/test_routes.py::test_a", True),
        ("tests/spark/test_source.py::test_model", False),
        ("tests/net/test_server.py::test_a[tests/virtual/x]", False),
    ],
)
def test_patient_are_those_that_only_compute(test: str, patient: bool) -> None:
    assert is_patient(group_of(test)) is patient
