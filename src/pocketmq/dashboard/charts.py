"""Message rates over the last minutes, as a chart. Pure: values in, options of ECharts out.

NiceGUI's `ui.echart` draws it, in the browser, from the library's own wheel.
"""

from collections import deque
from typing import Any

import msgspec

SPAN = 600.0
"""Seconds that are drawn."""
MOST = 600
"""Points that are kept."""
_GAP = 15.0
"""Seconds without a point after which the line is broken: no page was open to poll for."""
_COLOURS = {"in": "#5969e6", "out": "#2f9e62"}
_GREY = "#8b92a8"
"""Lines and text that are readable on light and on dark ground."""
_TOOLTIP = "value => value == null ? '?' : value.toLocaleString('en') + ' /s'"


class Rate(msgspec.Struct, frozen=True):
    """Messages per second at a time, in seconds since 1970; None if not all brokers responded."""

    at: float
    into: float | None
    out: float | None


class Rates:
    """The most recent rates, oldest first."""

    def __init__(self) -> None:
        self._points: deque[Rate] = deque(maxlen=MOST)

    def add(self, rate: Rate) -> None:
        """Append a rate; times ascend."""
        self._points.append(rate)

    def since(self, begin: float) -> list[Rate]:
        """Return those at or after a time."""
        return [point for point in self._points if point.at >= begin]


def rate_chart(points: list[Rate], now: float) -> dict[str, Any]:
    """Return the options of a chart of both rates up to `now`."""
    into = _series([(each.at, each.into) for each in points])
    out = _series([(each.at, each.out) for each in points])
    labels = {"color": _GREY}
    return {
        "animation": False,
        "grid": {"left": 8, "right": 16, "top": 32, "bottom": 4, "containLabel": True},
        "legend": {"left": 0, "top": 0, "itemWidth": 18, "textStyle": labels},
        "tooltip": {"trigger": "axis", ":valueFormatter": _TOOLTIP},
        "xAxis": {
            "type": "time",
            "min": _ms(now - SPAN),
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
        "series": [
            _line("in", into, {"width": 2}),
            _line("out", out, {"width": 2, "type": "dashed"}),
        ],
    }


def _line(name: str, data: list[list[float | None]], style: dict[str, Any]) -> dict[str, Any]:
    colour = _COLOURS[name]
    return {
        "type": "line",
        "name": name,
        "data": data,
        "showSymbol": False,
        "color": colour,
        "lineStyle": style | {"color": colour},
    }


def _series(points: list[tuple[float, float | None]]) -> list[list[float | None]]:
    """Return points as ECharts takes them: None, which breaks the line, where nothing is known."""
    data: list[list[float | None]] = []
    last: float | None = None
    for at, value in points:
        if last is not None and at - last > _GAP:
            data.append([_ms(at) - 1, None])
        data.append([_ms(at), None if value is None else round(value, 1)])
        last = at
    return data


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
