"""Figures over time as a chart. Pure: values in, options of ECharts out.

NiceGUI's `ui.echart` draws it, in the browser, from the library's own wheel. What was not observed
is shaded and says so; a line is never drawn across it.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from pocketmq.dashboard.recording import Points

SPANS = {"10 min": 600.0, "1 h": 3600.0, "6 h": 6 * 3600.0}
"""Seconds that can be drawn, by what a button says."""
GAP = 60.0
"""Seconds without a point after which nothing was observed; samples come every ten seconds."""
_COLOURS = ("#5969e6", "#2f9e62")
_GREY = "#8b92a8"
"""Lines and text that are readable on light and on dark ground."""
_NOT_OBSERVED = "not observed"


def line_chart(
    lines: Mapping[str, Points], now: float, span: float, unit: str = ""
) -> dict[str, Any]:
    """Return the options of a chart of one or two lines up to `now`."""
    labels = {"color": _GREY}
    begin = now - span
    series = [
        _line(name, _broken(points), number) for number, (name, points) in enumerate(lines.items())
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


def _broken(points: Points) -> list[list[float | None]]:
    """Return points as ECharts takes them: None, which breaks the line, where nothing is known."""
    data: list[list[float | None]] = []
    last: float | None = None
    for at, value in points:
        if last is not None and at - last > GAP:
            data.append([_ms(at) - 1, None])
        data.append([_ms(at), None if value is None else round(value, 1)])
        last = at
    return data


def _tooltip(unit: str) -> str:
    """Return a function of the browser; the unit is the dashboard's own text."""
    return f"value => value == null ? '?' : value.toLocaleString('en') + '{unit}'"


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
