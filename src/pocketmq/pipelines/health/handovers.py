"""Figures of a group's changes of hands: how they went, how long queues had no owner or two."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil

import msgspec

from pocketmq.balance.story.handed_over import LOST, HandedOver
from pocketmq.balance.story.recorded import ChangeOfHands


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
