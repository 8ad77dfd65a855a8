"""Figures over time: what is kept of them, and what ECharts is given."""

from typing import Any

from pocketmq.dashboard.charts import line_chart, thinned, unobserved
from pocketmq.dashboard.recording import KEPT, STEP, Points, RecordedFigure, Recorder


def series(points: Points, name: str = "in", now: float = 600.0) -> list[Any]:
    """Return the data of one line of two."""
    chart = line_chart({"in": points, "out": [(0.0, 5.0)]}, now, 600.0)
    (found,) = [each for each in chart["series"] if each["name"] == name]
    data: list[Any] = found["data"]
    return data


def test_both_lines_are_drawn_over_the_chosen_time_in_colours_of_their_own() -> None:
    points: Points = [(0.0, 0.0), (10.0, 10.0)]
    assert series(points) == [[0, 0.0], [10_000, 10.0]]
    assert series(points, "out") == [[0, 5.0]]
    chart = line_chart({"in": points, "out": points}, 600.0, 600.0, " /s")
    assert (chart["xAxis"]["min"], chart["xAxis"]["max"]) == (0, 600_000)
    colours = [(each["color"], each["lineStyle"]["color"]) for each in chart["series"]]
    assert len(set(colours)) == 2
    assert all(mark == line for mark, line in colours), "the legend shows the colour of the line"
    assert "' /s'" in chart["tooltip"][":valueFormatter"]


def test_what_is_not_known_is_a_gap_and_not_0() -> None:
    points: Points = [(0.0, 1.0), (2.0, None), (4.0, 1.0)]
    assert series(points) == [[0, 1.0], [2000, None], [4000, 1.0]]


def test_while_nobody_looks_there_is_a_gap_that_says_so() -> None:
    points: Points = [(0.0, 1.0), (100.0, 1.0)]
    assert series(points) == [[0, 1.0], [99_999, None], [100_000, 1.0]]
    chart = line_chart({"in": points}, 120.0, 600.0)
    assert chart["series"][0]["markArea"]["data"] == [
        [{"name": "not observed", "xAxis": -480_000}, {"xAxis": 0}],
        [{"name": "not observed", "xAxis": 0}, {"xAxis": 100_000}],
    ]


def test_samples_that_come_as_they_should_leave_nothing_unobserved() -> None:
    assert unobserved([float(at) for at in range(0, 600, 10)], 0.0, 600.0) == []
    assert unobserved([], 0.0, 600.0) == [(0.0, 600.0)]


def test_a_long_time_is_drawn_with_few_points_that_keep_peaks_and_unknowns() -> None:
    points: Points = [(float(at), 1.0) for at in range(0, 6 * 3600, 10)]
    points[777] = (7770.0, 99.0)
    points[1234] = (12340.0, None)
    few = thinned(points, 6 * 3600.0)
    assert len(few) <= 410
    assert {(7770.0, 99.0), (12340.0, None), points[-1]} <= set(few)
    assert [at for at, _ in few] == sorted(at for at, _ in few)
    assert thinned(points[:60], 600.0) == points[:60]
    assert thinned([], 600.0) == []
    chart = line_chart({"in": points}, 6 * 3600.0, 6 * 3600.0)
    unknown = [at for at, value in chart["series"][0]["data"] if value is None]
    assert unknown == [12_340_000], "thinning makes no gaps"
    with_gap = points[:800] + points[850:]
    chart = line_chart({"in": with_gap}, 6 * 3600.0, 6 * 3600.0)
    assert next(at for at, value in chart["series"][0]["data"] if value is None) == 8_499_999


def test_points_are_some_seconds_apart_and_the_newest_is_always_there() -> None:
    figure = RecordedFigure()
    for at in range(101):
        figure.add(float(at), float(at))
        assert figure.since(0.0)[-1] == (float(at), float(at))
    times = [at for at, _ in figure.since(0.0)]
    assert len(times) <= 2 + 100 / STEP
    assert figure.since(95.0) == [(each, each) for each in times if each >= 95]


def test_what_is_unknown_for_a_moment_is_kept_and_old_points_are_forgotten() -> None:
    figure = RecordedFigure()
    for at, value in ((0.0, 1.0), (2.0, 1.0), (4.0, None), (6.0, 1.0), (6.0, 9.0), (5.0, 9.0)):
        figure.add(at, value)
    assert figure.since(0.0) == [(0.0, 1.0), (2.0, 1.0), (4.0, None), (6.0, 1.0)]
    for at in range(0, int(3 * KEPT), 10):
        figure.add(10.0 + at, 1.0)
    assert KEPT <= figure.newest - figure.since(0.0)[0][0] <= 1.1 * KEPT + 10


def test_of_too_many_names_the_ones_not_seen_for_longest_go() -> None:
    recorder = Recorder(most_names=2)
    recorder.add(1.0, {"old": 1.0, "kept": 1.0})
    recorder.add(2.0, {"kept": 2.0})
    recorder.add(3.0, {"kept": 3.0, "new": 3.0})
    assert recorder.since("old", 0.0) == []
    assert recorder.since("new", 0.0) == [(3.0, 3.0)]
    assert len(recorder.since("kept", 0.0)) == 2
    assert recorder.since("never", 0.0) == []
    recorder.add(20.0, {"kept": None, "new": 0.0})
    assert recorder.since("kept", 20.0) == [(20.0, None)]
    assert recorder.since("new", 20.0) == [(20.0, 0.0)]
