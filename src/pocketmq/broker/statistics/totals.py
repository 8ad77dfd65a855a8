"""A broker's throughput: totals, rates over the last minutes, and the time that storing takes.

Counting is one addition per batch; rates come from periodic samples.
"""

from bisect import bisect_left
from collections import deque

SAMPLE_PERIOD = 10.0
"""Seconds between samples; tools show rates over 10 s, 1 min and 10 min."""
_WINDOWS = (1, 6, 60)
_STEPS_MS = (0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10_000)
_STEPS = (
    "<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s", "1~2s",
    "2~3s", "3~4s", "4~5s", "5~10s", "10s~",
)  # fmt: skip
"""How Java groups the times that messages take to be stored."""


class BrokerTotals:
    """Counters of one broker. Belongs to its loop."""

    __slots__ = (
        "_day", "_mornings", "_samples", "_times", "bytes_in", "messages_in", "messages_out",
        "pulls_found", "pulls_missed", "refused", "slowest_ms",
    )  # fmt: skip

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.messages_out = 0
        self.pulls_found = 0
        self.pulls_missed = 0
        self.refused = 0  # sends
        self.slowest_ms = 0
        self._times = [0] * len(_STEPS)
        self._samples: deque[tuple[float, int, int, int, int]] = deque(maxlen=_WINDOWS[-1] + 1)
        self._day = -1
        self._mornings = ((0, 0), (0, 0))  # in and out, yesterday's and today's

    def took(self, messages: int, size: int, elapsed_ms: int) -> None:
        """Count messages that were stored together, and how long that took."""
        self.messages_in += messages
        self.bytes_in += size
        if elapsed_ms <= 0:
            self._times[0] += messages
            return
        self._times[bisect_left(_STEPS_MS, elapsed_ms)] += messages
        self.slowest_ms = max(self.slowest_ms, elapsed_ms)

    def sample(self, now: float) -> None:
        """Store a sample of the totals."""
        self._samples.append(
            (now, self.messages_in, self.messages_out, self.pulls_found, self.pulls_missed)
        )

    def see_day(self, day: int) -> None:
        """Record the day it is: totals as of its morning are remembered."""
        if day != self._day:
            first = self._day < 0
            self._day = day
            now = (0, 0) if first else (self.messages_in, self.messages_out)
            self._mornings = self._mornings[1], now

    @property
    def mornings(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Messages in and out since the start, as of yesterday's morning and as of today's."""
        return self._mornings

    def times(self) -> str:
        """Show how long messages took to be stored, as Java shows it."""
        return " ".join(
            f"[{step}]:{count}" for step, count in zip(_STEPS, self._times, strict=True)
        )

    def time_of_part(self, part: float) -> float:
        """Return the milliseconds within which that part of the messages was stored, at most."""
        wanted, seen = part * sum(self._times), 0
        for limit, count in zip(_STEPS_MS, self._times, strict=False):
            seen += count
            if seen >= wanted:
                return float(min(limit, self.slowest_ms))
        return float(self.slowest_ms)

    def rates(self) -> dict[str, tuple[float, float, float]]:
        """Return messages and pulls a second, each over 10 s, 1 min and 10 min."""
        names = ("in", "out", "found", "missed")
        return {name: self._rates(column) for column, name in enumerate(names, 1)}

    def _rates(self, column: int) -> tuple[float, float, float]:
        samples = self._samples
        rates = []
        for window in _WINDOWS:
            if len(samples) <= 1:
                rates.append(0.0)
                continue
            last = samples[-1]
            first = samples[max(0, len(samples) - 1 - window)]
            rates.append((last[column] - first[column]) / max(last[0] - first[0], 1e-9))
        return rates[0], rates[1], rates[2]
