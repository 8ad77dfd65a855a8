"""How many messages come and go: the last minutes, as a drawing. Pure, over values."""

from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

SPAN = 600.0
"""Seconds that are drawn."""
MOST = 600
"""Points that are kept."""
_GAP = 15.0
"""Seconds without a point after which the line is broken: nobody has looked."""
_WIDTH, _HEIGHT = 1000, 120


class Rate(msgspec.Struct, frozen=True):
    """Messages a second at one moment, in seconds since 1970; None if not all brokers told."""

    at: float
    into: float | None
    out: float | None


class Rates:
    """The last of them."""

    def __init__(self) -> None:
        self._points: deque[Rate] = deque(maxlen=MOST)

    def add(self, rate: Rate) -> None:
        """Remember one; moments come in order."""
        self._points.append(rate)

    def since(self, begin: float) -> list[Rate]:
        """Give those after a moment."""
        return [point for point in self._points if point.at >= begin]


def most_of(points: list[Rate]) -> float:
    """Give the highest rate of either kind."""
    values = (value for point in points for value in (point.into, point.out))
    return max((value for value in values if value is not None), default=0.0)


def drawing(points: list[Rate], now: float) -> str:
    """Draw both lines as SVG; holds nothing but numbers and words of ours."""
    most = most_of(points)
    top = max(1.0, most)
    lines = "".join(
        f'<polyline class="{kind}" points="{text}"/>'
        for kind, name in (("pm-line-out", "out"), ("pm-line-in", "into"))
        for text in _lines(((each.at, getattr(each, name)) for each in points), now, top)
    )
    about = f"Messages in and out a second over the last ten minutes, at most {most:,.1f}"
    return (
        f'<svg role="img" aria-label="{about}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'preserveAspectRatio="none">{lines}</svg>'
    )


def _lines(points: Iterable[tuple[float, float | None]], now: float, top: float) -> Iterator[str]:
    line: list[str] = []
    last = 0.0
    for at, value in points:
        if value is None or (line and at - last > _GAP):
            yield " ".join(line)
            line = []
        if value is not None:
            x = _WIDTH * (1 - (now - at) / SPAN)
            y = (_HEIGHT - 2) * (1 - value / top) + 1
            line.append(f"{x:.1f},{y:.1f}")
        last = at
    yield " ".join(line)
