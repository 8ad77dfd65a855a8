"""Plots as SVG text: owners over time, lag, moves.

Owns drawing only. Colours come from the page's style sheet (`c0` … `c7` for members), so that a
plot is readable in light and dark mode; everything has a title that is shown on hover.
"""

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10

from pocketmq.balance.story.recorded import RecordedRebalance
from pocketmq.balance.story.spans import Span
from pocketmq.pipelines.health.figures import GroupLag
from pocketmq.pipelines.health.report import GroupHealth, QueueHealth

COLOURS = 8
"""Colours of members in the page's style sheet."""
WIDTH = 1000
LEFT = 110
RIGHT = 12
ROW = 20
MOST_ROWS = 160
MOST_POINTS = 2000


class TimeAxis:
    """The time axis of a plot, labelled by seconds since the start."""

    def __init__(self, began: float, ended: float) -> None:
        self.began = began
        self.length = max(ended - began, 1e-3)

    def x(self, time: float) -> float:
        """Return the x coordinate of a time."""
        share = min(1.0, max(0.0, (time - self.began) / self.length))
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 2)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the x coordinates and labels of round times."""
        step = _round_step(self.length / 8)
        count = floor(self.length / step + 1e-9)
        return [(self.x(self.began + n * step), clock(n * step)) for n in range(count + 1)]


def clock(seconds: float) -> str:
    """Format a duration: 4.2 s, 1:05, 2:03:00."""
    if seconds < 60:
        return f"{seconds:g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def gantt(group: GroupHealth, numbers: Mapping[str, int]) -> str:
    """Draw who owned each queue, when; `numbers` are the members' numbers in the legend."""
    axis = TimeAxis(group.began, group.ended)
    queues = shown(group)
    several = len({queue.queue.topic for queue in queues}) > 1
    height = ROW * len(queues) + 34
    parts = [_open(height, f"Owners of the queues of group {group.group} over time")]
    parts += _grid(axis, 6, height - 22)
    for place, queue in enumerate(queues):
        top = 6 + place * ROW
        name = f"{queue.queue.topic} {queue.queue}" if several else str(queue.queue)
        parts.append(_text(LEFT - 8, top + 14, _short(name, 17), "end", title=name))
        parts += _row(queue, axis, top, numbers)
    for one in group.rebalances[1:]:
        parts.append(_mark(axis.x(one.since), 2, height - 24, f"{one.cause}: {one.moved} moved"))
    return "".join([*parts, "</svg>"])


def shown(group: GroupHealth) -> list[QueueHealth]:
    """Return the queues that are drawn: all, or those with most moves."""
    if len(group.queues) <= MOST_ROWS:
        return group.queues
    ranked = sorted(group.queues, key=lambda q: (-q.moves, -q.unowned_seconds, q.queue))
    return sorted(ranked[:MOST_ROWS], key=lambda q: q.queue)


def _row(queue: QueueHealth, axis: TimeAxis, top: float, numbers: Mapping[str, int]) -> list[str]:
    parts = []
    for since, until in queue.absent:
        label = f"{queue.queue} not in the routes for {clock(round(until - since, 1))}"
        parts.append(_bar(axis, (since, until), (top + 3, ROW - 6), "absent", label))
    for since, until in queue.untold:
        label = f"{queue.queue} with a foreign member for {clock(round(until - since, 2))}"
        parts.append(_bar(axis, (since, until), (top + 3, ROW - 6), "absent", label))
    for since, until in queue.unowned:
        label = f"{queue.queue} without owner for {clock(round(until - since, 2))}"
        parts.append(_bar(axis, (since, until), (top + 3, ROW - 6), "unowned", label))
    for one in queue.owners:
        number = numbers[one.member]
        span = (
            f"{clock(round(one.since - axis.began, 1))} – {clock(round(one.until - axis.began, 1))}"
        )
        label = f"{queue.queue}: {one.member}, {span}, {one.ended}"
        style = f"c{number % COLOURS} {'again' if number >= COLOURS else ''}"
        parts.append(_bar(axis, (one.since, one.until), (top + 2, ROW - 4), style, label))
        left, right = axis.x(one.since), axis.x(one.until)
        if right - left > 22:
            parts.append(_text((left + right) / 2, top + 14, str(number + 1), "middle", "on"))
    for since, until in queue.shared:
        label = f"{queue.queue} with two owners for {clock(round(until - since, 2))}"
        parts.append(_bar(axis, (since, until), (top + 1, ROW - 2), "shared", label))
    return parts


def lag_plot(group: GroupHealth, lag: GroupLag) -> str:
    """Draw the group's lag over time, spikes shaded, rebalances marked."""
    axis = TimeAxis(group.began, group.ended)
    bottom, top = 180, 10
    scale = _Scale(max(lag.largest, 1), top, bottom)
    parts = [_open(bottom + 24, f"Lag of group {group.group} over time")]
    for spike in lag.spikes:
        label = f"spike of {spike.peak:,} messages"
        parts.append(_bar(axis, (spike.since, spike.until), (top, bottom - top), "spike", label))
    parts += _grid(axis, top, bottom)
    parts += scale.lines()
    inside = [p for p in lag.points if axis.began <= p.time <= axis.began + axis.length]
    points = inside[:: max(1, ceil(len(inside) / MOST_POINTS))]
    path = " ".join(f"{axis.x(p.time)},{scale.y(p.lag)}" for p in points)
    parts.append(f'<polyline class="line" points="{path}"/>')
    top_point = max(lag.points, key=lambda p: p.lag)
    x, y = axis.x(top_point.time), scale.y(top_point.lag)
    parts.append(
        f'<circle class="dot" cx="{x}" cy="{y}" r="3.5"><title>{top_point.lag:,}</title></circle>'
    )
    side = "end" if x > WIDTH - 120 else "start"
    parts.append(_text(x + (-8 if side == "end" else 8), y + 12, f"{top_point.lag:,}", side))
    for one in group.rebalances[1:]:
        parts.append(_mark(axis.x(one.since), top, bottom, one.cause))
    return "".join([*parts, "</svg>"])


def moves_plot(rebalances: Sequence[RecordedRebalance], began: float) -> str:
    """Draw the number of moved queues of each rebalance, beside the minimum."""
    some = rebalances[-40:]
    rows = [one for one in some if one.moved or one.minimum or one.joined or one.left or one.died]
    largest = max((max(one.moved, one.minimum, 1) for one in rows), default=1)
    height = 34 * len(rows) + 8
    unit = (WIDTH - 330 - 90) / largest
    parts = [_open(height, "Queues moved in each rebalance, and the minimum")]
    for place, one in enumerate(rows):
        top = 4 + 34 * place
        cause = f"{clock(round(one.since - began, 1))}  {one.cause}"
        parts.append(_text(320, top + 18, _short(cause, 48), "end", title=cause))
        for offset, value, style, what in (
            (2, one.moved, "moved", "moved"),
            (16, one.minimum, "minimum", "minimum"),
        ):
            width = round(value * unit, 2)
            parts.append(
                f'<rect class="{style}" x="330" y="{top + offset}" width="{max(width, 1.5)}" '
                f'height="12" rx="2"><title>{value} {what}</title></rect>'
            )
            parts.append(_text(336 + width, top + offset + 10, f"{value} {what}", "start", "small"))
    return "".join([*parts, "</svg>"])


class _Scale:
    """A vertical axis from 0."""

    def __init__(self, largest: float, top: float, bottom: float) -> None:
        self._step = _round_step(largest / 4)
        self._largest = ceil(largest / self._step) * self._step
        self._top, self._bottom = top, bottom

    def y(self, value: float) -> float:
        return round(self._bottom - value / self._largest * (self._bottom - self._top), 2)

    def lines(self) -> list[str]:
        parts = []
        for number in range(round(self._largest / self._step) + 1):
            value = number * self._step
            y = self.y(value)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
            parts.append(_text(LEFT - 8, y + 4, f"{value:,.0f}", "end"))
        return parts


def _round_step(least: float) -> float:
    """Return the next of 1, 2, 5, 10, 20 … that is at least `least`."""
    power = 10.0 ** floor(log10(max(least, 1e-6)))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least - 1e-12)


def _open(height: float, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}" '
        'xmlns="http://www.w3.org/2000/svg">'
    )


def _grid(axis: TimeAxis, top: float, bottom: float) -> list[str]:
    parts = []
    for x, name in axis.ticks():
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 16, name, "middle"))
    return parts


def _mark(x: float, top: float, bottom: float, label: str) -> str:
    return (
        f'<line class="mark" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}">'
        f"<title>{escape(label)}</title></line>"
    )


def _bar(axis: TimeAxis, span: Span, upright: tuple[float, float], style: str, label: str) -> str:
    left, right = axis.x(span[0]), axis.x(span[1])
    top, height = upright
    return (
        f'<rect class="{style.strip()}" x="{left}" y="{top}" width="{max(right - left, 1.2):.2f}" '
        f'height="{height}" rx="2"><title>{escape(label)}</title></rect>'
    )


def _text(
    x: float, y: float, text: str, anchor: str, style: str = "", *, title: str | None = None
) -> str:
    hint = "" if title is None or title == text else f"<title>{escape(title)}</title>"
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">'
        f"{escape(text)}{hint}</text>"
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
