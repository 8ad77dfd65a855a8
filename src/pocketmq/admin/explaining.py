"""Why each queue has its owner: the strategy inferred from the assignment.

Pure, over facts. Java's members do not report their strategy; it is inferred by trying all that
need no settings, first the one that some member reports. Groups with hand-over (STICKY) are
recognised by their members' ids, and explained by `sticky_story`.
"""

from collections.abc import Iterator

import msgspec

from pocketmq.admin.facts import GroupFacts
from pocketmq.admin.findings import GroupFinding, findings
from pocketmq.admin.sticky_story import STICKY, StickyStory, hands_over, sticky_story, why_sticky
from pocketmq.balance.allocation import Strategy
from pocketmq.balance.strategies import strategy_by_name
from pocketmq.errors import AllocationInputInvalid
from pocketmq.model import BalanceMode, MessageModel, MessageQueue, QueueStage, sort_queues

TRIED = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY-AVG")

_REPORTED = "allocateMessageQueueStrategy"


class QueueStory(msgspec.Struct, frozen=True):
    """A queue: its owners, the expected one, and why; None where unknown."""

    queue: MessageQueue
    holders: tuple[str, ...]
    expected: str | None
    lag: int | None
    why: str
    stages: dict[str, QueueStage] = {}
    """Where it is on its way, by member, in groups with hand-over."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The assignment of a group, and its problems."""

    group: str
    model: MessageModel | None
    members: tuple[str, ...]
    silent: tuple[str, ...]
    strategy: str | None
    """The strategy that gives this assignment, None if none fits; STICKY also on the way."""
    queues: tuple[QueueStory, ...]
    findings: tuple[GroupFinding, ...]
    sticky: StickyStory | None = None
    """The mode of a group with hand-over, and how far it is; None for all others."""
    clients: dict[str, str] = {}
    """The language and the release of each member, such as `JAVA V5_0_7`."""
    popping: tuple[str, ...] = ()
    """The members that are gRPC clients: brokers give them messages of all queues."""

    @property
    def fits(self) -> str | None:
        """The strategy, if this is exactly the assignment that it gives."""
        if self.sticky is not None and self.strategy == STICKY:
            return self.strategy if self.sticky.balanced else None
        return self.strategy


def explain(facts: GroupFacts) -> Explanation:
    """Explain the owner of every queue."""
    sticky = None
    shared = facts.model() is not MessageModel.BROADCASTING
    if shared and hands_over(facts):
        sticky, target = sticky_story(facts)
        if sticky.mode is not BalanceMode.JAVA:
            return _explained(facts, STICKY, tuple(_sticky_queues(facts, sticky, target)), sticky)
    members = facts.members()
    strategy = fitting_strategy(facts, members) if shared else None
    stories = tuple(_queues(facts, members, strategy))
    return _explained(facts, None if strategy is None else strategy.name, stories, sticky)


def _explained(
    facts: GroupFacts,
    strategy: str | None,
    queues: tuple[QueueStory, ...],
    sticky: StickyStory | None,
) -> Explanation:
    return Explanation(
        group=facts.group,
        model=facts.model(),
        members=tuple(facts.members()),
        silent=tuple(sorted(facts.silent)),
        strategy=strategy,
        queues=queues,
        findings=tuple(findings(facts)),
        clients=facts.clients(),
        popping=tuple(facts.popping()),
        sticky=sticky,
    )


def _queues(
    facts: GroupFacts, members: list[str], strategy: Strategy | None
) -> Iterator[QueueStory]:
    name = "" if strategy is None else strategy.name
    why, holders = _why_not(facts, members, strategy), facts.holders()
    for queues in facts.queues.values():
        ordered = sort_queues(queues)
        owners = _owners(strategy, ordered, members, facts.group)
        for position, queue in enumerate(ordered):
            place = f"{position + 1} of {len(ordered)}"
            yield QueueStory(
                queue=queue,
                holders=tuple(holders.get(queue, ())),
                expected=owners[position],
                lag=_lag(facts, queue),
                why=why or _by_strategy(name, owners[position], place, members),
            )


def _sticky_queues(
    facts: GroupFacts, story: StickyStory, target: dict[MessageQueue, str]
) -> Iterator[QueueStory]:
    holders, stages = facts.holders(), facts.stages()
    for queues in facts.queues.values():
        for queue in sort_queues(queues):
            owners, expected = holders.get(queue, ()), target.get(queue)
            its = stages.get(queue, {})
            yield QueueStory(
                queue=queue,
                holders=tuple(owners),
                expected=expected,
                lag=_lag(facts, queue),
                why=why_sticky(story, owners[0] if owners else None, expected, its),
                stages=its,
            )


def _lag(facts: GroupFacts, queue: MessageQueue) -> int | None:
    progress = facts.progress.get(queue)
    return None if progress is None else progress.broker_offset - progress.consumer_offset


def fitting_strategy(facts: GroupFacts, members: list[str]) -> Strategy | None:
    """Return the strategy that assigns every queue to its owner, None if none does.

    Queues without an owner may belong to silent members. AVG comes first where several fit.
    """
    if not members or not any(facts.queues.values()):
        return None
    reported = {info.properties.get(_REPORTED, "") for info in facts.running.values()}
    holders = facts.holders()
    for name in sorted(TRIED, key=lambda name: name not in reported):
        strategy = strategy_by_name(name)
        if all(
            _fits(strategy, queues, members, facts, holders)
            for queues in facts.queues.values()
            if queues
        ):
            return strategy
    return None


def _fits(
    strategy: Strategy,
    queues: tuple[MessageQueue, ...],
    members: list[str],
    facts: GroupFacts,
    holders: dict[MessageQueue, list[str]],
) -> bool:
    ordered = sort_queues(queues)
    owners = _owners(strategy, ordered, members, facts.group)
    for queue, owner in zip(ordered, owners, strict=True):
        held_by = holders.get(queue, [])
        if held_by != [owner] and not (not held_by and owner in facts.silent):
            return False
    return True


def _owners(
    strategy: Strategy | None, queues: list[MessageQueue], members: list[str], group: str
) -> list[str | None]:
    if strategy is None or not queues or not members:
        return [None] * len(queues)
    try:
        return strategy.allocate_all(queues, members, group)
    except AllocationInputInvalid:  # such as rooms that names do not contain
        return [None] * len(queues)


def _why_not(facts: GroupFacts, members: list[str], strategy: Strategy | None) -> str | None:
    """Return why no strategy explains the assignment, None if one does."""
    if facts.model() is MessageModel.BROADCASTING:
        return "broadcasting: every member reads every queue"
    if not members:
        return "the group has no member"
    if strategy is not None:
        return None
    if set(facts.popping()) == set(members):
        return "POP: its messages go to any member that asks"
    return "no common strategy gives this assignment"


def _by_strategy(strategy: str, owner: str | None, place: str, members: list[str]) -> str:
    if owner is None:
        return f"{strategy} assigns it to no member"
    member = members.index(owner) + 1
    return f"{strategy}: queue {place} goes to member {member} of {len(members)}"
