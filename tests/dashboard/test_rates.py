"""The drawing of what comes and goes."""

import re

from pocketmq.dashboard.charts import Rate, Rates, drawing


def lines(points: list[Rate], kind: str, now: float = 600.0) -> list[str]:
    """Give the lines of one kind that have any points."""
    found = re.findall(rf'class="{kind}" points="([^"]*)"', drawing(points, now))
    return [line for line in found if line]


def test_time_goes_to_the_right_and_much_is_high() -> None:
    points = [Rate(0.0, 0.0, 5.0), Rate(10.0, 10.0, 5.0)]
    assert lines(points, "pm-line-in") == ["0.0,119.0 16.7,1.0"]
    assert lines(points, "pm-line-out") == ["0.0,60.0 16.7,60.0"]
    assert "at most 10.0" in drawing(points, 600.0)


def test_what_is_not_known_is_a_gap_and_not_0() -> None:
    points = [Rate(0.0, 1.0, 1.0), Rate(2.0, None, 1.0), Rate(4.0, 1.0, 1.0)]
    assert lines(points, "pm-line-in") == ["0.0,1.0", "6.7,1.0"]
    assert len(lines(points, "pm-line-out")) == 1


def test_while_nobody_looks_there_is_a_gap() -> None:
    assert len(lines([Rate(0.0, 1.0, 1.0), Rate(100.0, 1.0, 1.0)], "pm-line-in")) == 2


def test_no_points_are_no_error_and_old_ones_are_forgotten() -> None:
    assert lines([], "pm-line-in") == []
    rates = Rates()
    for number in range(2000):
        rates.add(Rate(float(number), 1.0, 1.0))
    assert [point.at for point in rates.since(1998.0)] == [1998.0, 1999.0]
    assert len(rates.since(0.0)) == 600
