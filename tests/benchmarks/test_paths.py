"""Benchmarks on both paths: children note their rows, the least of each is compared."""

import pytest
from benchmarks._paths import least, measured, table

MODULE = "tests.benchmarks.path_rows"


@pytest.fixture(autouse=True)
def _no_path_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POCKETMQ_PURE", raising=False)


def test_a_child_runs_on_the_path_it_is_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    assert measured(MODULE, pure=False, shown=True) == {"native": 3.0, "both": 2.0}
    assert capfd.readouterr().out == "shown\n"
    assert measured(MODULE, pure=True, shown=False) == {"pure": 3.0, "both": 6.0}
    assert capfd.readouterr().out == ""


def test_the_table_has_the_rows_of_both_and_how_many_times_less_the_core_costs() -> None:
    heads, one, two = table({"b": 2.0, "only": 1.0, "a": 4.0}, {"a": 6.0, "b": 5.0})
    assert heads.split() == ["CPU", "µs", "a", "message", "native", "pure", "pure", "/", "native"]
    assert one.split() == ["b", "2.00", "5.00", "2.50"]
    assert two.split() == ["a", "4.00", "6.00", "1.50"]


def test_the_least_of_all_rounds_counts() -> None:
    assert least([{"a": 2.0, "b": 1.0}, {"a": 1.5, "b": 3.0}]) == {"a": 1.5, "b": 1.0}
