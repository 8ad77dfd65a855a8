"""The table of groups that change: goals of STICKY, and a section that is replaced alone."""

import pytest
from benchmarks._handovers import Figures
from benchmarks._rebalance_group import RETURN_WITHIN, Way
from benchmarks.java.balance import cells, missed
from benchmarks.java.group_section import TITLE, missed_points, with_section
from benchmarks.rebalance import Told

STICKY = Way("ours", {"strategy": "STICKY"})
GOOD = Figures("join", 1, 1, (0.03,), (0.01,), (0.010,), (0.0,), 0)


def told(figures: Figures, way: Way = STICKY, lost: int = 0) -> Told:
    return Told(way, [figures], lost, 100)


@pytest.mark.parametrize(
    ("figures", "lost", "text"),
    [
        (GOOD, 0, None),
        (GOOD._replace(twice=1), 0, "twice 0"),
        (GOOD._replace(moved=2), 0, "fewest moves"),
        (GOOD._replace(two_owners=(0.001,)), 0, "two owners 0"),
        (GOOD._replace(without_owner=(0.025,)), 0, "without owner p99 < 25 ms"),
        (GOOD, 1, "lost 0"),
        (GOOD._replace(kind="kill", without_owner=(0.059,), twice=12), 0, None),
        (GOOD._replace(kind="kill", twice=13), 0, "twice ≤ 12"),
        (GOOD._replace(kind="kill", without_owner=(0.06,)), 0, "without owner p99 < 60 ms"),
        (GOOD._replace(kind="rolling", moved=0, minimum=0, without_owner=(2.0,)), 0, None),
        (GOOD._replace(kind="rolling", moved=1, minimum=0), 0, "fewest moves"),
    ],
)
def test_a_goal_that_is_missed_is_named_and_marked(
    figures: Figures, lost: int, text: str | None
) -> None:
    found = told(figures, lost=lost)
    (row,) = cells(found)
    assert missed([found]) == ([] if text is None else [f"ours, {figures.kind}: {text}"])
    assert row[-1].count("✗") == (text is not None)
    assert text is None or f"{text} ✗" in row[-1]


def test_only_sticky_has_goals() -> None:
    plain = told(GOOD._replace(twice=9), Way("ours", {"strategy": "AVG"}))
    assert missed([plain]) == []
    assert [row[-1] for row in cells(plain)] == [""]


def test_the_section_is_replaced_and_the_rest_of_the_page_stays() -> None:
    page = "# Title\n\n| a |\n"
    once = with_section(page, f"{TITLE}\n\nold")
    assert once == f"# Title\n\n| a |\n\n{TITLE}\n\nold\n"
    assert with_section(once, f"{TITLE}\n\nnew") == once.replace("old", "new")


def test_only_sticky_members_say_that_they_will_be_back() -> None:
    assert STICKY.restarting.options == {"strategy": "STICKY", "return_within": RETURN_WITHIN}
    assert STICKY.restarting.restarting == STICKY.restarting
    plain = Way("AVG", {"strategy": "AVG"})
    assert plain.restarting == plain


def test_a_missed_goal_of_a_group_stands_below_the_table_with_its_reason() -> None:
    slow = told(GOOD._replace(without_owner=(0.03,)))
    (point,) = missed_points([slow, told(GOOD)], {"ours": "two cores"})
    assert point == "Missed by ours: join: without owner p99 < 25 ms: two cores."
    assert list(missed_points([told(GOOD)], {"ours": "two cores"})) == []
