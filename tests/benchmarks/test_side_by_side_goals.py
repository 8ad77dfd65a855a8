"""The comparison's goals: each marked, missed ones named, columns only where they were measured."""

import re
from pathlib import Path

import pytest
from benchmarks.java.goals import GOALS, SUBMIT
from benchmarks.java.page import Run, cells_of, heads, line, missed_points, page
from benchmarks.java.pairs import Warmth
from benchmarks.java.reasons import known_reasons
from benchmarks.java.rows import Cell, Row
from benchmarks.java.scale import Scale


def row(name: str, unit: str = "messages/s", **values: float) -> Row:
    names = {"jj": "Java/Java", "oj": "ours/Java", "oo": "ours/ours", "k": "Kafka", "p": "pure"}
    return Row(name, unit, {names[key]: Cell(value) for key, value in values.items()})


@pytest.mark.parametrize(
    ("found", "missed"),
    [
        (row("send, 64 in flight", jj=100, oj=150, oo=400), []),
        (row("send, 64 in flight", jj=100, oj=149, oo=399), ["≥ 4 ×", "≥ 1.5 × (ours/Java)"]),
        (row("live latency, p99", "ms", jj=2, oo=1), []),
        (row("live latency, p99", "ms", jj=2, oo=1.1), ["≤ 0.5 ×"]),
        (row(SUBMIT, jj=1, oj=1, oo=300_000, k=300_000), []),
        (row(SUBMIT, jj=1, oj=1, oo=299_999, k=300_000), ["≥ 300 000/s", "≥ 1 × Kafka"]),
        (row(SUBMIT, jj=1, oo=300_000), []),
        (row("idle servers' memory, their own", "MB", jj=900, oo=71), ["≤ 70 MB"]),
        (row("rebalance, join: pause", "ms", jj=1, oj=9, oo=9), []),
    ],
)
def test_a_goal_that_was_missed_is_named(found: Row, missed: list[str]) -> None:
    assert found.missed() == missed


def test_each_goal_is_marked_in_a_column_of_its_own() -> None:
    cells = dict(
        zip(heads(), cells_of(row("send, one at a time", jj=10, oj=11, oo=35, p=20)), strict=True)
    )
    assert (cells["ratio"], cells["goal"]) == ("3.50", "≥ 3.5 × ✓")
    assert (cells["ours/Java ratio"], cells["its goal"]) == ("1.10", "≥ 1.2 × ✗")
    assert (cells["pure"], cells["Kafka"], cells["Java/ours"]) == ("20", "", "")


def test_a_goal_beside_kafka_is_open_where_kafka_was_not_measured() -> None:
    (value, kafka) = row(SUBMIT, jj=1, oo=400_000).verdicts()
    assert str(value) == "≥ 300 000/s ✓"
    assert str(kafka) == "≥ 1 × Kafka (not measured)"


def test_the_page_lists_what_was_missed_and_by_how_much(tmp_path: Path) -> None:
    rows = [
        row("send, one at a time", jj=10, oj=12, oo=20),
        row("send, batches of 32", jj=10, oj=10, oo=20),
    ]
    text = page(rows, Run("5.5.0", None, Scale(), tmp_path))
    table, _, missed = text.partition("## Goals that were missed\n\n")
    (point,) = (each for each in missed.split("\n- ") if each)
    assert " ".join(point.split()).split("; ")[:3] == [  # then comes the reason, if there is one
        "- send, one at a time: ≥ 3.5 × missed",
        "reached 2.00 ×",
        "ours/Java 1.20 ×",
    ]
    lines = [each for each in table.splitlines() if each.startswith("|")]
    assert len(lines) == 4
    assert len({each.count("|") for each in lines}) == 1
    assert "no Kafka" in table
    assert len(line(heads())) > 100


def test_a_reason_stands_beside_the_figures_of_its_goal_while_it_is_missed() -> None:
    reasons = {SUBMIT: "one core is busy"}
    slow = row(SUBMIT, jj=1000, oo=2000, k=1000)
    (point,) = missed_points([slow], reasons)
    assert " ".join(point.split()).partition(": ")[2].split("; ") == [
        "≥ 300 000/s missed",
        "reached 2 000 messages/s",
        "reached 2.00 ×",
        "2.00 × Kafka",
        "one core is busy",
    ]
    assert list(missed_points([row(SUBMIT, jj=1, oo=300_000, k=1)], reasons)) == []


def test_reasons_that_are_written_down_are_those_of_rows_with_goals() -> None:
    assert known_reasons().keys() <= GOALS.keys() | {"ours, STICKY / Java"}


def test_every_goal_of_the_comparison_has_a_bound_that_its_text_names() -> None:
    for goals in GOALS.values():
        for goal in (goal for goal in goals if goal is not None):
            found = re.match(r"[≥≤] ([\d .]+)(?:/(\d+))?", goal.text)
            assert found is not None
            top, bottom = found[1].replace(" ", ""), found[2]
            assert goal.bound == float(top) / float(bottom or 1), goal
            assert goal.less == goal.text.startswith("≤")


def test_warm_is_what_got_no_faster_for_a_while() -> None:
    warmth = Warmth(patience=2)
    reached = []
    for rate in (100, 200, 205, 300, 310, 290):
        warmth.add(rate)
        reached.append(warmth.reached)
    assert reached == [False, False, False, False, False, True]
