"""A group's lag over time, and its spikes."""

from collections import defaultdict
from collections.abc import Iterable
from statistics import median

import msgspec

from pocketmq.model import QueueName
from pocketmq.pipelines.health.observed import OffsetSample

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
