"""Figures over time as a chart on a page, with buttons for the span of time.

What is drawn is pure: values in, options of ECharts out. NiceGUI's `ui.echart` draws it, in the
browser, from the library's own wheel. What was not observed is shaded and says so; a line is
never drawn across it.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from nicegui import ui

from pocketmq.dashboard.parts import button, card
from pocketmq.dashboard.recording import Points

SPANS = {"10 min": 600.0, "1 h": 3600.0, "6 h": 6 * 3600.0}
"""Seconds that can be drawn, by what a button says."""
GAP = 60.0
"""Seconds without a point after which nothing was observed; samples come every ten seconds."""
_COLOURS = ("#5969e6", "#2f9e62")
_GREY = "#8b92a8"
"""Lines and text that are readable on light and on dark ground."""
_POINTS = 400
"""Parts that a line is drawn in."""
_NOT_OBSERVED = "not observed"


def line_chart(
    lines: Mapping[str, Points], now: float, span: float, unit: str = ""
) -> dict[str, Any]:
    """Return the options of a chart of one or two lines up to `now`."""
    labels = {"color": _GREY}
    begin = now - span
    series = [
        _line(name, _drawn(points, span), number)
        for number, (name, points) in enumerate(lines.items())
    ]
    times = sorted({at for points in lines.values() for at, _ in points})
    if series:
        series[0]["markArea"] = _shaded(unobserved(times, begin, now))
    return {
        "animation": False,
        "grid": {"left": 8, "right": 16, "top": 32, "bottom": 4, "containLabel": True},
        "legend": {"left": 0, "top": 0, "itemWidth": 18, "textStyle": labels},
        "tooltip": {"trigger": "axis", ":valueFormatter": _tooltip(unit)},
        "xAxis": {
            "type": "time",
            "min": _ms(begin),
            "max": _ms(now),
            "axisLabel": labels | {"hideOverlap": True},
            "axisLine": {"lineStyle": labels},
        },
        "yAxis": {
            "type": "value",
            "min": 0,
            "minInterval": 1,
            "splitNumber": 3,
            "axisLabel": labels,
            "splitLine": {"lineStyle": {"color": _GREY, "opacity": 0.25}},
        },
        "series": series,
    }


def unobserved(times: list[float], begin: float, now: float) -> list[tuple[float, float]]:
    """Return the spans between `begin` and `now` in which nothing was observed."""
    edges = [begin, *times, now]
    return [(since, until) for since, until in pairwise(edges) if until - since > GAP]


def thinned(points: Points, span: float) -> Points:
    """Return few enough points to be sent often: the peak of each part, and what is unknown."""
    width = span / _POINTS
    kept: Points = []
    part: float | None = None
    for at, value in points:
        if part is not None and at // width == part and (value is None) == (kept[-1][1] is None):
            known = kept[-1][1]
            if value is not None and known is not None and value >= known:
                kept[-1] = (at, value)
            continue
        kept.append((at, value))
        part = at // width
    if points and kept[-1] != points[-1]:
        kept.append(points[-1])
    return kept


def _shaded(spans: list[tuple[float, float]]) -> dict[str, Any]:
    return {
        "silent": True,
        "itemStyle": {"color": _GREY, "opacity": 0.12},
        "label": {"color": _GREY, "position": "inside"},
        "data": [
            [{"name": _NOT_OBSERVED, "xAxis": _ms(since)}, {"xAxis": _ms(until)}]
            for since, until in spans
        ],
    }


def _line(name: str, data: list[list[float | None]], number: int) -> dict[str, Any]:
    colour = _COLOURS[number % len(_COLOURS)]
    style = {"width": 2, "color": colour, "type": "dashed" if number else "solid"}
    return {
        "type": "line",
        "name": name,
        "data": data,
        "showSymbol": False,
        "color": colour,
        "lineStyle": style,
    }


def _drawn(points: Points, span: float) -> list[list[float | None]]:
    """Return points as ECharts takes them: None, which breaks the line, where nothing is known."""
    return [
        [_ms(at), None if value is None else round(value, 1)]
        for at, value in thinned(broken(points), span)
    ]


def broken(points: Points) -> Points:
    """Return points with an unknown one at the end of each gap, which no line may cross."""
    marked: Points = []
    for at, value in points:
        if marked and at - marked[-1][0] > GAP:
            marked.append((at - 0.001, None))
        marked.append((at, value))
    return marked


def _tooltip(unit: str) -> str:
    """Return a function of the browser; the unit is the dashboard's own text."""
    return f"value => value == null ? '?' : value.toLocaleString('en') + '{unit}'"


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


Lines = Callable[[float], Mapping[str, Points]]
"""Returns the lines of a chart, by name, since a time."""


class ChartCard:
    """A chart of one or two lines. Call `show` when there is something new."""

    def __init__(self, title: str, lines: Lines, unit: str = "") -> None:
        self._lines = lines
        self._unit = unit
        self._span = next(iter(SPANS))
        self._buttons: dict[str, ui.element] = {}
        with card(title):
            spans = ui.element("div").classes("pm-tabs").props("role=group")
            spans.props["aria-label"] = "Span of time"
            with spans:
                for name in SPANS:
                    self._buttons[name] = button(name, partial(self._choose, name))
            self._chart = ui.echart({}).classes("pm-chart")
            self._chart.props["role"], self._chart.props["aria-label"] = "img", title
        self._choose(self._span)

    def show(self) -> None:
        """Draw it again."""
        now, span = time.time(), SPANS[self._span]
        self._chart.options.update(line_chart(self._lines(now - span), now, span, self._unit))

    def _choose(self, span: str) -> None:
        self._span = span
        for name, each in self._buttons.items():
            each.props["aria-pressed"] = "true" if name == span else "false"
            each.update()
        self.show()
