"""A live group as a situation that events can be tried on. Pure, over facts."""

from collections.abc import Collection

from pocketmq.admin.facts import GroupFacts
from pocketmq.admin.sticky_story import sticky_story
from pocketmq.balance.allocation import Strategy, StrategySettings, is_group_strategy
from pocketmq.balance.what_if import Situation
from pocketmq.errors import Absent
from pocketmq.model import MessageQueue
from pocketmq.model.group_balance import handover_version


def situation_of(facts: GroupFacts, strategy: Strategy, foreign: Collection[str] = ()) -> Situation:
    """Return the group as it is now, with the owners of its queues if the strategy uses them.

    Where some members hand over (STICKY), the others are foreign; where none does, all are taken
    for members that use the strategy. `foreign` adds to them, such as a Java member that is to
    join. Raises `Absent` without members.
    """
    members = facts.members()
    if not members:
        raise Absent("online member of group", facts.group)
    return Situation.of(
        facts.queues,
        members,
        strategy,
        facts.group,
        previous=_owners(facts) if is_group_strategy(strategy) else {},
        foreign={*foreign_members(members), *foreign},
    )


def foreign_members(members: Collection[str]) -> list[str]:
    """Return the members that do not hand over; none if no member does."""
    others = [member for member in members if handover_version(member) is None]
    return others if len(others) < len(members) else []


def settings_of(facts: GroupFacts) -> StrategySettings:
    """Return what STICKY needs to know of a group: the strategy of its foreign members.

    It is inferred from what they own; AVG if that tells nothing.
    """
    if not foreign_members(facts.members()):
        return StrategySettings()
    story, _ = sticky_story(facts)
    return StrategySettings(mixed=story.foreign_strategy or "AVG")


def _owners(facts: GroupFacts) -> dict[MessageQueue, str]:
    holders = facts.holders()
    queues = [queue for queues in facts.queues.values() for queue in queues]
    return {queue: holders[queue][0] for queue in queues if holders.get(queue)}
