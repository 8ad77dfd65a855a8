"""Balance and movement of every group of a part, moment by moment.

Owns the array form of `pocketmq.balance.what_if`'s picture and movement: the same numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pocketmq.balance.allocation import Strategy
from pocketmq.pipelines.fleet.events import FleetEvent, SwitchTo
from pocketmq.pipelines.fleet.owners import Owners, owners_at
from pocketmq.pipelines.fleet.part import Bools, Ints, Part

NUMBERS = ("queues", "unowned", "spread", "topic_spread", "moved", "minimum", "added", "removed")


@dataclass(frozen=True)
class Measured:
    """Numbers of each group at one moment of one strategy; the movement is that since the last.

    `spread` is that of the members' totals, `topic_spread` the largest of any topic.
    """

    strategy: str
    queues: Ints
    unowned: Ints
    spread: Ints
    topic_spread: Ints
    moved: Ints
    minimum: Ints
    added: Ints
    removed: Ints


def measure(part: Part, strategy: Strategy, events: Sequence[FleetEvent]) -> list[Measured]:
    """Give the numbers at the start and after each event."""
    owners = owners_at(part, 0, strategy)
    result = [_measured(part, strategy, 0, None, owners)]
    for moment, event in enumerate(events, 1):
        if isinstance(event, SwitchTo):
            strategy = event.strategy
        earlier, owners = owners, owners_at(part, moment, strategy)
        result.append(_measured(part, strategy, moment, earlier, owners))
    return result


def _measured(
    part: Part, strategy: Strategy, moment: int, earlier: Owners | None, owners: Owners
) -> Measured:
    rows, members = part.rows[moment], part.members[moment]
    counts = _counts(part, owners, rows)
    unowned, held = counts[:, 0], counts[:, 1:]
    present = members[part.pair_group]
    totals = np.zeros((len(part.groups), held.shape[1]), dtype=np.int64)
    np.add.at(totals, part.pair_group, held)
    topic_spread = np.zeros(len(part.groups), dtype=np.int64)
    np.maximum.at(topic_spread, part.pair_group, _spread(held, present))
    nothing = np.zeros(len(part.groups), dtype=np.int64)
    moved = minimum = added = removed = nothing
    if earlier is not None:
        before = part.rows[moment - 1]
        kept = before & rows
        group = part.row_group
        moved = _per_group(part, group[kept & (earlier != owners)])
        added = _per_group(part, group[rows & ~before])
        removed = _per_group(part, group[before & ~rows])
        minimum = _fewest_moves(part, _counts(part, earlier, kept), counts, present)
    return Measured(
        strategy=strategy.name,
        queues=_per_group(part, part.row_group[rows]),
        unowned=_summed(part, unowned),
        spread=_spread(totals, members),
        topic_spread=topic_spread,
        moved=moved,
        minimum=minimum,
        added=added,
        removed=removed,
    )


def _counts(part: Part, owners: Owners, rows: Bools) -> Ints:
    """Count each pair's rows by owner: [pair, 1 + place], column 0 for nobody."""
    width = part.roster_size + 1
    places = part.row_pair[rows] * width + owners[rows] + 1
    counted: Ints = np.bincount(places, minlength=len(part.pair_topic) * width)
    return counted.reshape(-1, width)


def _spread(held: Ints, present: Bools) -> Ints:
    """Give most less fewest over those present; 0 if there is nobody."""
    most = np.where(present, held, 0).max(axis=1)
    fewest = np.where(present, held, np.iinfo(np.int64).max).min(axis=1)
    return np.where(present.any(axis=1), most - fewest, 0)


def _fewest_moves(part: Part, had: Ints, has: Ints, present: Bools) -> Ints:
    """See `pocketmq.balance.what_if.fewest_moves`; members that left count as having nothing."""
    had_sorted = np.sort(np.where(present, had[:, 1:], 0), axis=1)
    has_sorted = np.sort(np.where(present, has[:, 1:], 0), axis=1)
    may_stay = np.minimum(had_sorted, has_sorted).sum(axis=1) + np.minimum(had[:, 0], has[:, 0])
    return _summed(part, had.sum(axis=1) - may_stay)


def _per_group(part: Part, groups: Ints) -> Ints:
    return np.bincount(groups, minlength=len(part.groups))


def _summed(part: Part, of_pairs: Ints) -> Ints:
    result = np.zeros(len(part.groups), dtype=np.int64)
    np.add.at(result, part.pair_group, of_pairs)
    return result
