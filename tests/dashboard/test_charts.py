"""The chart of message rates: what ECharts is given."""

from typing import Any

from pocketmq.dashboard.charts import Rate, Rates, rate_chart


def series(points: list[Rate], name: str, now: float = 600.0) -> list[Any]:
    """Return the data of one line."""
    (found,) = [each for each in rate_chart(points, now)["series"] if each["name"] == name]
    data: list[Any] = found["data"]
    return data


def test_both_rates_are_drawn_over_the_last_ten_minutes() -> None:
    points = [Rate(0.0, 0.0, 5.0), Rate(10.0, 10.0, 5.0)]
    assert series(points, "in") == [[0, 0.0], [10_000, 10.0]]
    assert series(points, "out") == [[0, 5.0], [10_000, 5.0]]
    axis = rate_chart(points, 600.0)["xAxis"]
    assert (axis["min"], axis["max"]) == (0, 600_000)


def test_what_is_not_known_is_a_gap_and_not_0() -> None:
    points = [Rate(0.0, 1.0, 1.0), Rate(2.0, None, 1.0), Rate(4.0, 1.0, 1.0)]
    assert series(points, "in") == [[0, 1.0], [2000, None], [4000, 1.0]]
    assert [value for _, value in series(points, "out")] == [1.0, 1.0, 1.0]


def test_while_nobody_looks_there_is_a_gap() -> None:
    points = [Rate(0.0, 1.0, 1.0), Rate(100.0, 1.0, 1.0)]
    assert series(points, "in") == [[0, 1.0], [99_999, None], [100_000, 1.0]]


def test_no_points_are_no_error_and_old_ones_are_forgotten() -> None:
    assert series([], "in") == []
    rates = Rates()
    for number in range(2000):
        rates.add(Rate(float(number), 1.0, 1.0))
    assert [point.at for point in rates.since(1998.0)] == [1998.0, 1999.0]
    assert len(rates.since(0.0)) == 600
