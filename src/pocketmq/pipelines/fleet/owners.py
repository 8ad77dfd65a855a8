"""Who owns which row, for all groups of a part at once.

Owns the array form of the rules in `pocketmq.balance.allocation`; an owner is a place in the
group's roster, -1 is nobody. What has no array form here is asked of the rules themselves, group
by group, and so are groups in which two ring positions meet.
"""

import numpy as np
import numpy.typing as npt

from pocketmq.balance.allocation import (
    Average,
    AverageByCircle,
    ConsistentHash,
    MachineRoom,
    Strategy,
    md5_hash,
)
from pocketmq.model.queue import MessageQueue
from pocketmq.pipelines.fleet.part import Bools, Ints, Part
from pocketmq.pipelines.fleet.ring import member_positions, queue_positions

Owners = npt.NDArray[np.int64]
NOBODY = -1
_PLACE_BITS = np.uint64(12)
_MOST_PLACES = 1 << 12
_NO_NODE = np.uint64(1 << 32)
_GROUP_BITS = np.uint64(33)


def owners_at(part: Part, moment: int, strategy: Strategy) -> Owners:
    """Give the owner of each row at a moment; -1 as well for rows that do not exist then."""
    rows = part.rows[moment]
    alone: list[int] = part.odd
    match strategy:
        case Average():
            owners = _average(part, moment, rows)
        case AverageByCircle():
            position, _ = _positions(part, rows)
            members = _members(part, moment)
            owners = _seated(part, moment, position % np.maximum(members, 1), rows)
        case MachineRoom():
            owners = _machine_room(part, moment, strategy)
        case ConsistentHash(hash_function=place) if (
            place is md5_hash and part.roster_size <= _MOST_PLACES
        ):
            owners, meeting = _consistent_hash(part, moment, strategy)
            alone = sorted({*alone, *meeting})
        case _:
            owners = np.full(len(rows), NOBODY)
            alone = list(range(len(part.groups)))
    for group in alone:
        _ask_alone(part, moment, strategy, group, owners)
    return owners


def _positions(part: Part, rows: Bools) -> tuple[Ints, Ints]:
    """Give each row's number among those of its pair that count, and how many those are."""
    counted = np.concatenate([[0], np.cumsum(rows)])
    before, after = counted[part.pair_first[:-1]], counted[part.pair_first[1:]]
    position = counted[:-1] - before[part.row_pair]
    return position, (after - before)[part.row_pair]


def _members(part: Part, moment: int) -> Ints:
    """Give for each row how many members its group has."""
    counts: Ints = part.members[moment].sum(axis=1)
    of_rows: Ints = counts[part.row_group]
    return of_rows


def _seated(part: Part, moment: int, seat: Ints, rows: Bools) -> Owners:
    """Turn positions in the member list into places in the roster."""
    present = part.members[moment]
    places = np.argsort(~present, axis=1, kind="stable")
    groups = part.row_group
    owned = rows & present.any(axis=1)[groups]
    seat = np.where(owned, seat, 0)
    return np.where(owned, places[groups, seat], NOBODY)


def _average(part: Part, moment: int, rows: Bools) -> Owners:
    position, queues = _positions(part, rows)
    size, larger = np.divmod(queues, np.maximum(_members(part, moment), 1))
    in_larger = larger * (size + 1)
    seat = np.where(
        position < in_larger,
        position // (size + 1),
        larger + (position - in_larger) // np.maximum(size, 1),
    )
    return _seated(part, moment, seat, rows)


def _machine_room(part: Part, moment: int, strategy: MachineRoom) -> Owners:
    inside: dict[str, bool] = {}
    flags: dict[int, Bools] = {}
    for roster in part.pair_roster:
        if id(roster) not in flags:
            for broker, _ in roster.queues:
                if broker not in inside:
                    dealt = strategy.allocate_all([MessageQueue("", broker, 0)], ["any"])
                    inside[broker] = dealt == ["any"]
            flags[id(roster)] = np.array([inside[broker] for broker, _ in roster.queues], np.bool_)
    rows = part.rows[moment] & np.concatenate([flags[id(roster)] for roster in part.pair_roster])
    position, queues = _positions(part, rows)
    size, _ = np.divmod(queues, np.maximum(_members(part, moment), 1))
    in_blocks = size * _members(part, moment)
    seat = np.where(position < in_blocks, position // np.maximum(size, 1), position - in_blocks)
    return _seated(part, moment, seat, rows)


def _consistent_hash(part: Part, moment: int, strategy: ConsistentHash) -> tuple[Owners, list[int]]:
    """Give the owners, and the groups where two nodes meet on the ring."""
    rows, present = part.rows[moment], part.members[moment]
    nodes = strategy.virtual_nodes
    groups, width = present.shape
    if nodes == 0:
        return np.full(len(rows), NOBODY), []
    if nodes not in part.ring_cache:
        part.ring_cache[nodes] = member_positions(part, nodes)
    place = np.where(present[:, :, None], part.ring_cache[nodes], _NO_NODE)
    keyed = (place << _PLACE_BITS) | np.arange(width, dtype=np.uint64)[None, :, None]
    ring = np.sort(keyed.reshape(groups, width * nodes), axis=1)
    positions = ring >> _PLACE_BITS
    met = (positions[:, 1:] == positions[:, :-1]) & (positions[:, 1:] != _NO_NODE)
    base = np.arange(groups, dtype=np.uint64) << _GROUP_BITS
    row_group = part.row_group
    wanted = base[row_group] | _queue_places(part)
    found = np.searchsorted((positions | base[:, None]).ravel(), wanted)
    found -= row_group * (width * nodes)
    taken = present.sum(axis=1) * nodes
    found[found >= taken[row_group]] = 0
    mask = np.uint64(_MOST_PLACES - 1)
    owner = (ring[row_group, found] & mask).astype(np.int64)
    owned = rows & (taken > 0)[row_group]
    return np.where(owned, owner, NOBODY), np.flatnonzero(met.any(axis=1)).tolist()


def _queue_places(part: Part) -> npt.NDArray[np.uint64]:
    if -1 not in part.ring_cache:
        part.ring_cache[-1] = queue_positions(part)
    return part.ring_cache[-1]


def _ask_alone(part: Part, moment: int, strategy: Strategy, group: int, owners: Owners) -> None:
    """Have the rule itself decide for one group."""
    members = part.moments[group][moment]
    places = {member: place for place, member in enumerate(part.rosters[group])}
    first, last = np.searchsorted(part.pair_group, [group, group + 1])
    for pair in range(first, last):
        rows = range(int(part.pair_first[pair]), int(part.pair_first[pair + 1]))
        there = [row for row in rows if part.rows[moment, row]]
        every = part.queues(pair)
        queues = [every[row - rows.start] for row in there]
        owners[rows.start : rows.stop] = NOBODY
        if queues and members:
            dealt = strategy.allocate_all(queues, members, part.groups[group])
            for row, owner in zip(there, dealt, strict=True):
                owners[row] = NOBODY if owner is None else places[owner]
