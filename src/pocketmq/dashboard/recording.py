"""Figures over time, by name, in bounded memory. No clock: times are arguments.

Arrays of machine numbers: six hours of a thousand names take about 40 MB. Points are nine seconds
apart, but the newest is always there. Unknown is not 0, and is kept as unknown.
"""

from array import array
from collections.abc import Mapping
from math import isnan, nan

Points = list[tuple[float, float | None]]
"""Times in seconds since 1970 with values, oldest first; None is unknown."""

STEP = 9.0
"""Seconds between two points that are kept."""
KEPT = 6 * 3600.0
"""Seconds that are kept."""
MOST_NAMES = 1000


class RecordedFigure:
    """One figure over time."""

    def __init__(self) -> None:
        self._times = array("d")
        self._values = array("d")

    def add(self, at: float, value: float | None) -> None:
        """Add a value; one at an earlier time than the last is left out."""
        times, values, number = self._times, self._values, nan if value is None else value
        if times and at <= times[-1]:
            return
        if (
            len(times) > 1
            and times[-1] - times[-2] < STEP
            and isnan(values[-1]) == isnan(number) == isnan(values[-2])
        ):
            times[-1], values[-1] = at, number
            return
        times.append(at)
        values.append(number)
        if times[0] < at - 1.1 * KEPT:  # seldom, since every time all others move up
            stale = next(n for n, each in enumerate(times) if each >= at - KEPT)
            del times[:stale], values[:stale]

    def since(self, begin: float) -> Points:
        """Return the points at or after a time."""
        return [
            (at, None if isnan(value) else value)
            for at, value in zip(self._times, self._values, strict=True)
            if at >= begin
        ]

    @property
    def newest(self) -> float:
        """The time of the newest point; 0 if there is none."""
        return self._times[-1] if self._times else 0.0


class Recorder:
    """Figures by name; of more than `MOST_NAMES`, those not seen for longest are dropped."""

    def __init__(self, most_names: int = MOST_NAMES) -> None:
        self._most = most_names
        self._figures: dict[str, RecordedFigure] = {}

    def add(self, at: float, values: Mapping[str, float | None]) -> None:
        """Add the values of a time; a name that is missing has not been observed."""
        for name, value in values.items():
            figure = self._figures.get(name)
            if figure is None:
                figure = self._figures[name] = RecordedFigure()
            figure.add(at, value)
        if len(self._figures) > self._most:
            ranked = sorted(self._figures, key=lambda name: -self._figures[name].newest)
            self._figures = {name: self._figures[name] for name in ranked[: self._most]}

    @property
    def names(self) -> tuple[str, ...]:
        """The names that were seen."""
        return tuple(self._figures)

    def since(self, name: str, begin: float) -> Points:
        """Return the points of a name at or after a time; none if it was never seen."""
        figure = self._figures.get(name)
        return [] if figure is None else figure.since(begin)
