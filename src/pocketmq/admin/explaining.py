"""Why each queue is where it is: the strategy that gives this picture, and each queue's place.

Pure, over facts. Java's members do not tell their strategy; it is found by trying all that need no
settings, first the one that some member names.
"""

import msgspec

from pocketmq.admin.facts import GroupFacts
from pocketmq.admin.findings import GroupFinding, findings
from pocketmq.balance.allocation import Strategy, strategy_by_name
from pocketmq.errors import AllocationInputInvalid
from pocketmq.model.kinds import MessageModel
from pocketmq.model.queue import MessageQueue, sort_queues

TRIED = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY-AVG")

_TOLD = "allocateMessageQueueStrategy"


class QueueStory(msgspec.Struct, frozen=True):
    """One queue: who holds it, who should, and why; None where it is not known."""

    queue: MessageQueue
    holders: tuple[str, ...]
    expected: str | None
    lag: int | None
    why: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A group's picture, and what is wrong with it."""

    group: str
    model: MessageModel | None
    members: tuple[str, ...]
    silent: tuple[str, ...]
    strategy: str | None
    """The strategy whose division this is, None if none fits."""
    queues: tuple[QueueStory, ...]
    findings: tuple[GroupFinding, ...]


def explain(facts: GroupFacts) -> Explanation:
    """Tell the story of every queue."""
    members = facts.members()
    holders = facts.holders()
    strategy = None
    if facts.model() is not MessageModel.BROADCASTING:
        strategy = fitting_strategy(facts, members)
    name = "" if strategy is None else strategy.name
    why = _why_not(facts, members, strategy)
    stories = []
    for queues in facts.queues.values():
        ordered = sort_queues(queues)
        owners = _owners(strategy, ordered, members, facts.group)
        for position, queue in enumerate(ordered):
            progress = facts.progress.get(queue)
            place = f"{position + 1} of {len(ordered)}"
            stories.append(
                QueueStory(
                    queue=queue,
                    holders=tuple(holders.get(queue, ())),
                    expected=owners[position],
                    lag=None
                    if progress is None
                    else progress.broker_offset - progress.consumer_offset,
                    why=why or _by_strategy(name, owners[position], place, members),
                )
            )
    return Explanation(
        group=facts.group,
        model=facts.model(),
        members=tuple(members),
        silent=tuple(sorted(facts.silent)),
        strategy=None if strategy is None else strategy.name,
        queues=tuple(stories),
        findings=tuple(findings(facts)),
    )


def fitting_strategy(facts: GroupFacts, members: list[str]) -> Strategy | None:
    """Find the strategy that gives every queue to the member that holds it.

    Queues of silent members may be anywhere among them. AVG comes first where several fit.
    """
    if not members or not any(facts.queues.values()):
        return None
    told = {info.properties.get(_TOLD, "") for info in facts.running.values()}
    holders = facts.holders()
    for name in sorted(TRIED, key=lambda name: name not in told):
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
    except AllocationInputInvalid:  # such as rooms that the names do not tell
        return [None] * len(queues)


def _why_not(facts: GroupFacts, members: list[str], strategy: Strategy | None) -> str | None:
    """Tell why no strategy explains the picture, None if one does."""
    if facts.model() is MessageModel.BROADCASTING:
        return "broadcasting: every member reads every queue"
    if not members:
        return "there is no member"
    return "no common strategy gives this picture" if strategy is None else None


def _by_strategy(strategy: str, owner: str | None, place: str, members: list[str]) -> str:
    if owner is None:
        return f"{strategy} gives it to nobody"
    member = members.index(owner) + 1
    return f"{strategy}: queue {place} goes to member {member} of {len(members)}"
