"""What-if on a group as it is: an answer for each strategy, and queue maps of it. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from pocketmq.admin.balance import settings_of, situation_of
from pocketmq.admin.facts import GroupFacts
from pocketmq.balance import what_if
from pocketmq.balance.strategies import STICKY, strategy_by_name
from pocketmq.dashboard.assignment.queue_map import QueueMapData, preview_map
from pocketmq.errors import AllocationInputInvalid

COMPARED = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY-AVG", STICKY)
ASSUMED = "AVG"
"""The default strategy of groups."""


class Compared(msgspec.Struct, frozen=True):
    """One strategy after the events: as if the group had always used it, or had changed to it."""

    strategy: str
    in_use: bool
    spread: int | None = None
    """Most less fewest queues of a member, over all topics; None if it refuses."""
    worst_topic: int | None = None
    """The same within the topic where it is largest."""
    unowned: int | None = None
    moved: int | None = None
    """Queues that move if the group uses it already."""
    minimum: int | None = None
    moved_from_now: int | None = None
    """Queues that move if the group switches to it as well."""
    refused: str | None = None
    idle: int | None = None
    """Members without a queue."""


class Trial(msgspec.Struct, frozen=True):
    """What would happen to the group with the strategy it uses."""

    strategy: str
    answer: what_if.WhatIf
    before: QueueMapData
    after: QueueMapData
    compared: list[Compared]

    @property
    def last(self) -> what_if.Ownership:
        """The assignment after the last event."""
        return self.answer.steps[-1].after if self.answer.steps else self.answer.before

    @property
    def movement(self) -> what_if.Movement:
        """What would move from the first to the last assignment."""
        return self.answer.overall


def try_events(
    facts: GroupFacts, strategy: str | None, events: Sequence[what_if.Event], seats: dict[str, int]
) -> Trial:
    """Apply events to the group; members keep their seats.

    Raises `AllocationInputInvalid` for impossible events.
    """
    name = strategy or ASSUMED
    situation = situation_of(facts, strategy_by_name(name, settings_of(facts)))
    answer = what_if.what_if(situation, events)
    shares = [*answer.before.shares, *(each for step in answer.steps for each in step.after.shares)]
    seats = _seated(seats, (share.member for share in shares))
    moved = {move.queue for move in answer.overall.moves}
    last = answer.steps[-1].after if answer.steps else answer.before
    return Trial(
        strategy=name,
        answer=answer,
        before=preview_map(answer.before, seats, set()),
        after=preview_map(last, seats, moved | {move.queue for move in answer.overall.added}),
        compared=[
            _compare(facts, situation, other, events, in_use=other == strategy)
            for other in dict.fromkeys((name, *COMPARED))
        ],
    )


def _seated(seats: dict[str, int], members: Iterable[str]) -> dict[str, int]:
    """Return the seats, with new members after all others."""
    seated = dict(seats)
    for member in members:
        seated.setdefault(member, max(seated.values(), default=-1) + 1)
    return seated


def _compare(
    facts: GroupFacts,
    situation: what_if.Situation,
    name: str,
    events: Sequence[what_if.Event],
    *,
    in_use: bool,
) -> Compared:
    strategy = strategy_by_name(name, settings_of(facts))
    others = [event for event in events if not isinstance(event, what_if.StrategyChanged)]
    try:
        always = what_if.what_if(situation_of(facts, strategy), others)
        # First the change: STICKY keeps what it finds, which is to be what members own now.
        changed = what_if.what_if(situation, [what_if.StrategyChanged(strategy), *others])
    except AllocationInputInvalid as error:
        return Compared(name, in_use, refused=str(error))
    last = always.steps[-1].after if always.steps else always.before
    return Compared(
        strategy=name,
        in_use=in_use,
        spread=last.spread,
        worst_topic=last.worst_topic,
        unowned=len(last.unowned),
        moved=always.overall.moved,
        minimum=always.overall.minimum,
        moved_from_now=changed.overall.moved,
        idle=last.idle,
    )
