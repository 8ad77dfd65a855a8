"""How much goes through a broker: totals, and rates over the last while.

Counting is one addition per batch; rates come from samples that housekeeping takes now and then.
"""

from collections import deque

SAMPLE_PERIOD = 10.0
"""Seconds between samples; tools show rates over 10 s, 1 min and 10 min."""
_WINDOWS = (1, 6, 60)


class Traffic:
    """Counters of one broker. Belongs to its loop."""

    __slots__ = (
        "_samples", "bytes_in", "messages_in", "messages_out", "pulls_found", "pulls_missed",
        "refused",
    )  # fmt: skip

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.messages_out = 0
        self.pulls_found = 0
        self.pulls_missed = 0
        self.refused = 0  # sends
        self._samples: deque[tuple[float, int, int, int, int]] = deque(maxlen=_WINDOWS[-1] + 1)

    def sample(self, now: float) -> None:
        """Remember the totals as they are at this moment."""
        self._samples.append(
            (now, self.messages_in, self.messages_out, self.pulls_found, self.pulls_missed)
        )

    def rates(self) -> dict[str, tuple[float, float, float]]:
        """Give messages and pulls a second, each over 10 s, 1 min and 10 min."""
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
