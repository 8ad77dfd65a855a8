"""A group with hand-over: its mode, the assignment that its members are on their way to. Pure.

Computes the target as members do, from the owners that they report. That works at any time: from
every state on the way the same target follows (see `balance.sticky`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from pocketmq.admin.facts import GroupFacts
from pocketmq.balance.allocation import Strategy
from pocketmq.balance.sticky import assign, divide
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.balance.what_if.situation import spread
from pocketmq.errors import AllocationInputInvalid
from pocketmq.model import BalanceMode, MessageQueue, QueueStage, handover_version

STICKY = "STICKY"
FOREIGN_TRIED = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")
"""Strategies that foreign members may use."""


class StickyStory(msgspec.Struct, frozen=True, kw_only=True):
    """How a group with hand-over shares its queues."""

    mode: BalanceMode
    """By the members' ids, which all members see alike."""
    foreign: tuple[str, ...]
    """Members that do not hand over."""
    foreign_strategy: str | None
    """The strategy that foreign members use, as far as can be seen; None without any."""
    reasons: dict[str, str]
    """Why members do not hand over although their strategy is STICKY, as they report."""
    moves: int | None
    """Queues that still have to change hands; None while owners are unknown, and in mode java."""
    unowned: int
    stages: dict[str, int]
    """The number of queues in each stage that is not plain running."""

    @property
    def balanced(self) -> bool | None:
        """Whether every queue is where it shall be; None if that is unknown."""
        return None if self.moves is None else self.moves == 0 and self.unowned == 0


def hands_over(facts: GroupFacts) -> bool:
    """Return whether a group has members of strategy STICKY, by their ids or their reports."""
    return any(handover_version(member) is not None for member in facts.members()) or any(
        report.mode in (BalanceMode.STICKY, BalanceMode.MIXED) or report.reason
        for report in facts.reports.values()
    )


def sticky_story(facts: GroupFacts) -> tuple[StickyStory, dict[MessageQueue, str]]:
    """Return the story, and the owner that each queue shall have; none while owners are unknown."""
    members = facts.members()
    ours = [member for member in members if handover_version(member) is not None]
    foreign = tuple(member for member in members if handover_version(member) is None)
    holders = facts.holders()
    every = [queue for queues in facts.queues.values() for queue in queues]
    owners = {queue: holders[queue][0] for queue in every if holders.get(queue)}
    known = bool(ours) and not facts.silent and not facts.unseen_brokers
    target: dict[MessageQueue, str] = {}
    strategy = None
    if known:
        strategy = _foreign_strategy(facts, ours, foreign, owners) if foreign else None
        target = _target(facts, ours, foreign, owners, strategy)
    stages = Counter(
        stage.value for report in facts.reports.values() for stage in report.stages.values()
    )
    mode = BalanceMode.STICKY if not foreign else BalanceMode.MIXED if ours else BalanceMode.JAVA
    story = StickyStory(
        mode=mode,
        foreign=foreign,
        foreign_strategy=None if strategy is None else strategy.name,
        reasons={m: r.reason for m, r in sorted(facts.reports.items()) if r.reason},
        moves=sum(owners.get(queue, owner) != owner for queue, owner in target.items())
        if known
        else None,
        unowned=len(every) - len(owners),
        stages=dict(sorted(stages.items())),
    )
    return story, target


def _target(
    facts: GroupFacts,
    ours: Sequence[str],
    foreign: Sequence[str],
    owners: Mapping[MessageQueue, str],
    strategy: Strategy | None,
) -> dict[MessageQueue, str]:
    if strategy is None:
        if _is_even(facts, ours, owners):
            return dict(owners)  # the target of a balanced assignment is itself
        return assign(facts.queues, ours, owners)
    division = divide(facts.queues, ours, foreign, strategy=strategy, group=facts.group)
    return division.foreign | assign(division.rest, ours, owners)


def _is_even(facts: GroupFacts, members: Sequence[str], owners: Mapping[MessageQueue, str]) -> bool:
    """Return whether every queue has an owner, as evenly as STICKY wants it.

    Spares the computation of the target for thousands of queues that are looked at every second.
    """
    if not owners.keys() >= {queue for queues in facts.queues.values() for queue in queues}:
        return False
    counts: list[Counter[str | None]] = [
        Counter([owners[queue] for queue in queues]) for queues in facts.queues.values()
    ]
    whole = sum(counts, Counter[str | None]())
    return whole.keys() <= set(members) and all(
        spread(count, members) <= 1 for count in (*counts, whole)
    )


def _foreign_strategy(
    facts: GroupFacts,
    ours: Sequence[str],
    foreign: Sequence[str],
    owners: Mapping[MessageQueue, str],
) -> Strategy:
    """Return the strategy that gives foreign members what they own.

    AVG if none does, or they own nothing yet.
    """
    held = {queue: owner for queue, owner in owners.items() if owner in foreign}
    for name in FOREIGN_TRIED if held else ():
        strategy = strategy_by_name(name)
        try:
            division = divide(facts.queues, ours, foreign, strategy=strategy, group=facts.group)
        except AllocationInputInvalid:
            continue
        if division.foreign == held:
            return strategy
    return strategy_by_name(FOREIGN_TRIED[0])


def why_sticky(
    story: StickyStory, owner: str | None, expected: str | None, stages: Mapping[str, QueueStage]
) -> str:
    """Return in words why a queue is where it is, and what happens to it."""
    if expected is None:
        return "STICKY: unknown, since not every member and broker has responded"
    if expected in story.foreign:
        by = f"{story.foreign_strategy}: the share of {expected}, which does not hand over"
        return by if owner in (expected, None) else f"{by}; {owner} leaves it"
    if owner == expected:
        text = "STICKY: stays with its owner"
    elif owner is None:
        text = f"STICKY: goes to {expected}"
    else:
        text = f"STICKY: goes from {owner} to {expected}"
    return "; ".join([text, *(f"{member}: {_WORDS[stage]}" for member, stage in stages.items())])


_WORDS = {
    QueueStage.WANTED: "waits for it",
    QueueStage.CLAIMED: "has asked its owner for it",
    QueueStage.TAKING: "locks it and reads its offset",
    QueueStage.BEHIND_BARRIER: "handles messages, commits when the previous owner has finished",
    QueueStage.FILLING_HOLE: "handles messages that the failed owner left unfinished",
    QueueStage.DRAINING: "finishes its last messages",
    QueueStage.FENCED: "starts and commits nothing, its lease may have expired",
}
"""What a member does with a queue in each stage."""
