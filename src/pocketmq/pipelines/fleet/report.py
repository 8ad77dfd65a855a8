"""The summary of an estate: a few numbers for each strategy and step.

Numbers of groups are merged part by part, so that an estate of any size needs little memory; the
worst groups are kept by name.
"""

from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest

import msgspec

from pocketmq.balance.what_if import Numbers

WORST = 10


class WorstGroup(msgspec.Struct, frozen=True):
    """A group with a large spread, or with many moved queues."""

    group: str
    spread: int
    moved: int
    minimum: int


class StepSummary(msgspec.Struct, frozen=True):
    """All groups at one step. `uneven` counts groups with a spread of more than one queue."""

    event: str
    strategy: str
    queues: int
    unowned: int
    uneven: int
    mean_spread: float
    spread_99: int
    largest_spread: int
    largest_topic_spread: int
    moved: int
    minimum: int
    added: int
    removed: int
    worst: list[WorstGroup]


class StrategySummary(msgspec.Struct, frozen=True):
    """One strategy from the first step to the last."""

    strategy: str
    steps: list[StepSummary]

    @property
    def moved(self) -> int:
        """The number of moved queues."""
        return sum(step.moved for step in self.steps)

    @property
    def minimum(self) -> int:
        """The minimum number of moved queues."""
        return sum(step.minimum for step in self.steps)


class FleetReport(msgspec.Struct, frozen=True):
    """The estate, and the result of each strategy."""

    groups: int
    members: int
    pairs: int
    strategies: list[StrategySummary]
    seconds: float


class StepTally(msgspec.Struct):
    """One step of one strategy, summed up so far; picklable, and two can be added."""

    strategy: str
    totals: dict[str, int]
    spreads: dict[int, int]
    topic_spread: int
    worst: list[WorstGroup]

    def add(self, other: "StepTally") -> None:
        """Add another part's numbers."""
        for name, value in other.totals.items():
            self.totals[name] += value
        for spread, count in other.spreads.items():
            self.spreads[spread] = self.spreads.get(spread, 0) + count
        self.topic_spread = max(self.topic_spread, other.topic_spread)
        self.worst = _worst([*self.worst, *other.worst])

    def summary(self, event: str) -> StepSummary:
        """Return the summary of the step."""
        groups = sum(self.spreads.values())
        seen, spread_99 = 0, 0
        for spread in sorted(self.spreads):
            seen += self.spreads[spread]
            spread_99 = spread
            if seen * 100 >= groups * 99:
                break
        return StepSummary(
            event=event,
            strategy=self.strategy,
            uneven=sum(count for spread, count in self.spreads.items() if spread > 1),
            mean_spread=round(sum(s * n for s, n in self.spreads.items()) / groups, 3),
            spread_99=spread_99,
            largest_spread=max(self.spreads),
            largest_topic_spread=self.topic_spread,
            worst=self.worst,
            **self.totals,
        )


def tally(groups: Sequence[str], strategy: str, measured: Sequence[Numbers]) -> StepTally:
    """Sum up one step of one part."""
    queues, unowned, _, topic_spreads, moved, minimum, added, removed = zip(*measured, strict=True)
    return StepTally(
        strategy=strategy,
        totals={
            "queues": sum(queues),
            "unowned": sum(unowned),
            "moved": sum(moved),
            "minimum": sum(minimum),
            "added": sum(added),
            "removed": sum(removed),
        },
        spreads=dict(Counter([one.spread for one in measured])),
        topic_spread=max(topic_spreads),
        worst=_worst(
            [
                WorstGroup(group, one.spread, one.moved, one.minimum)
                for group, one in zip(groups, measured, strict=True)
                if one.spread > 1 or one.moved > one.minimum
            ]
        ),
    )


def _worst(groups: list[WorstGroup]) -> list[WorstGroup]:
    """Return the `WORST` groups, the most uneven first."""
    return nsmallest(WORST, groups, key=lambda g: (-g.spread, g.minimum - g.moved, g.group))
