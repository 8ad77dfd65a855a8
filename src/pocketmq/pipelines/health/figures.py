"""Figures of a group: its lag over time with its spikes, and its changes of hands.

For changes of hands: how they went, how long queues had no owner or two.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import ceil
from statistics import median

import msgspec

from pocketmq.balance.story.handed_over import LOST, HandedOver
from pocketmq.balance.story.recorded import ChangeOfHands
from pocketmq.model import QueueName
from pocketmq.pipelines.health.observed import OffsetSample


class Quantiles(msgspec.Struct, frozen=True):
    """How some durations are distributed, in seconds; by nearest rank."""

    count: int
    p50: float
    p99: float
    longest: float


class HandoverFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What changes of hands cost.

    Times between machines include the difference of their clocks, which no event can tell. So time
    with two owners is reported in full, and `doubtful` is the part of it that was between machines.
    """

    kinds: dict[str, int]
    """The number of hand-overs of each kind, as members told them; those of version 1 tell none."""
    lost: int
    """Queues whose lock was refused to their owner, which had to drop them."""
    without_owner: Quantiles | None
    """Of all changes of hands; None if there were none."""
    by_kind: dict[str, Quantiles]
    """The same for each kind."""
    draining: Quantiles | None
    """How long givers took to finish their last messages; None if none told."""
    two_owners: float
    doubtful: float


def handover_figures(moves: Sequence[ChangeOfHands], told: Sequence[HandedOver]) -> HandoverFigures:
    """Return the figures of changes of hands, and of the hand-overs that members reported."""
    kinds = Counter([one.kind for one in told])
    by_kind: dict[str, list[float]] = {}
    for move in moves:
        if move.kind is not None:
            by_kind.setdefault(move.kind, []).append(move.pause)
    return HandoverFigures(
        kinds=dict(sorted(kinds.items())),
        lost=kinds[LOST],
        without_owner=quantiles([move.pause for move in moves]),
        by_kind={kind: found for kind in sorted(by_kind) if (found := quantiles(by_kind[kind]))},
        draining=quantiles([one.draining for one in told if one.draining is not None]),
        two_owners=sum(move.overlap for move in moves),
        doubtful=sum(move.overlap for move in moves if not move.one_clock),
    )


def quantiles(values: Iterable[float]) -> Quantiles | None:
    """Return the distribution of some durations; None if there are none."""
    ordered = sorted(values)
    if not ordered:
        return None

    def rank(share: float) -> float:
        return ordered[ceil(share * len(ordered)) - 1]

    return Quantiles(len(ordered), rank(0.5), rank(0.99), ordered[-1])


SPIKE_FACTOR = 3.0
SPIKE_LEAST = 50
"""A spike is above 3 times the median lag, and at least 50 messages above it."""


class LagPoint(msgspec.Struct, frozen=True):
    """The lag of all queues at a time."""

    time: float
    lag: int


class Spike(msgspec.Struct, frozen=True):
    """A period in which the lag was far above its median."""

    since: float
    until: float
    peak: int
    peak_at: float


class GroupLag(msgspec.Struct, frozen=True):
    """A group's lag: over time, by queue, and its spikes."""

    points: list[LagPoint]
    by_queue: dict[str, list[LagPoint]]
    median: float
    largest: int
    last: int
    spikes: list[Spike]


def lag_of(samples: Iterable[OffsetSample]) -> GroupLag | None:
    """Return a group's lag from its samples; None if there are none.

    Queues are sampled one after the other, and not at all while their broker is down: a queue's
    last sampled lag is assumed until the next sample.
    """
    ordered = sorted(samples, key=lambda sample: sample.time)
    if not ordered:
        return None
    by_queue: dict[QueueName, list[LagPoint]] = defaultdict(list)
    now: dict[QueueName, int] = {}
    points: list[LagPoint] = []
    total = 0
    for sample in ordered:
        total += sample.lag - now.get(sample.name, 0)
        now[sample.name] = sample.lag
        by_queue[sample.name].append(LagPoint(sample.time, sample.lag))
        if points and points[-1].time == sample.time:
            points.pop()
        points.append(LagPoint(sample.time, total))
    usual = median(point.lag for point in points)
    return GroupLag(
        points=points,
        by_queue={f"{name.topic} {name}": by_queue[name] for name in sorted(by_queue)},
        median=usual,
        largest=max(point.lag for point in points),
        last=points[-1].lag,
        spikes=_spikes(points, max(usual * SPIKE_FACTOR, usual + SPIKE_LEAST)),
    )


def _spikes(points: list[LagPoint], above: float) -> list[Spike]:
    spikes: list[Spike] = []
    run: list[LagPoint] = []
    for point in [*points, LagPoint(points[-1].time, -1)]:
        if point.lag > above:
            run.append(point)
        elif run:
            top = max(run, key=lambda p: p.lag)
            spikes.append(Spike(run[0].time, run[-1].time, top.lag, top.time))
            run = []
    return spikes
