"""A chart on a page, with buttons for the span of time."""

import time
from collections.abc import Callable, Mapping
from functools import partial

from nicegui import ui

from pocketmq.dashboard.charts import SPANS, line_chart
from pocketmq.dashboard.parts import button, card
from pocketmq.dashboard.recording import Points

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
