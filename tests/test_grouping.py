"""Tests that share what is costly stay together in a parallel run, and others do not wait for them."""

from pathlib import Path

import pytest

from tests.grouping import group_of

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
        (CROWDS, CROWDS),
        (
            "tests/interop/test_tools_java.py::test_the_same_lines[java-clusterList -m]",
            "tests/interop/test_tools_java.py java",
        ),
        (
            "tests/interop/test_rows_java.py::test_both_hear_both[java-ours]",
            "tests/interop/test_rows_java.py java-ours",
        ),
    ],
)
def test_a_test_belongs_to_a_group(test: str, group: str) -> None:
    assert group_of(test) == group


def test_workers_get_whole_groups(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held against pytest-xdist itself, whose own marks for groups do nothing with pytest 9.2."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(
        """
        import pytest
        from tests.grouping import Together

        def pytest_xdist_make_scheduler(config, log):
            return Together(config, log)
        """
    )
    body = """
        import os, pathlib, pytest

        @pytest.mark.parametrize("n", range(20))
        def test_one(n):
            with pathlib.Path("ran").open("a") as ran:
                print(pathlib.Path(__file__).name, os.environ["PYTEST_XDIST_WORKER"], file=ran)
        """
    pytester.makepyfile(test_a=body, test_b=body)
    pytester.runpytest_subprocess("-n", "2", "--dist", "loadgroup").assert_outcomes(passed=40)
    ran = (pytester.path / "ran").read_text().splitlines()
    assert len(ran) == 40
    assert len({line.split()[0] for line in ran}) == len(set(ran)) == 2
