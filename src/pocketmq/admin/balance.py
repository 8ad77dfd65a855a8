"""The assignment of a live group: explained, simulated, rebalanced.

A group becomes a situation that events can be tried on; that is pure, over facts.
"""

import asyncio
from collections.abc import Collection, Iterable

from pocketmq.admin.explaining import Explanation, explain
from pocketmq.admin.facts import GroupFacts, balance_reports
from pocketmq.admin.gathered import Gathered
from pocketmq.admin.groups import GroupProgress, Groups, Running
from pocketmq.admin.sticky_story import sticky_story
from pocketmq.admin.topics import Topics
from pocketmq.admin.wire import AdminWire
from pocketmq.balance.allocation import Strategy, StrategySettings, is_group_strategy
from pocketmq.balance.what_if import Event, Situation, WhatIf, what_if
from pocketmq.errors import Absent, MQError, RouteNotFound
from pocketmq.model import MessageQueue, handover_version, sort_queues
from pocketmq.model.names import is_retry_topic
from pocketmq.protocol.requests import groups as rows
from pocketmq.protocol.requests import membership


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


class Balance:
    """Inspects how a group shares its queues."""

    def __init__(self, wire: AdminWire, topics: Topics, groups: Groups) -> None:
        self._wire = wire
        self._topics = topics
        self._groups = groups

    async def facts(self, group: str, *, patience: float | None = None) -> GroupFacts:
        """Return what brokers and members report; members slower than `patience` are silent.

        Raises `Absent` for an unknown group.
        """
        views = (await self._groups.connections(group)).some()
        running, progress = await asyncio.gather(
            self._groups.running(group, patience=patience), self._progress(group)
        )
        topics = _topics_of(views, running)
        routes = await asyncio.gather(*(self._queues(topic) for topic in topics))
        queues = dict(zip(topics, routes, strict=True))
        return GroupFacts(
            group=group,
            views={each.place.broker: each.value for each in views},
            unseen_brokers={each.place.broker: str(each.error) for each in views.missing},
            running=running.members,
            silent={member: str(error) for member, error in running.silent.items()},
            queues=queues,
            progress=progress.queues,
            now_ms=self._wire.now_ms(),
            reports=balance_reports(running.members, queues),
        )

    async def explain(self, group: str) -> Explanation:
        """Return the owner of each queue and why, and the problems. Raises `Absent`."""
        return explain(await self.facts(group))

    async def what_if(self, group: str, strategy: Strategy, events: Iterable[Event] = ()) -> WhatIf:
        """Try events on the group as it is now; nothing is changed.

        Raises `Absent` if the group is unknown or has no member, and `AllocationInputInvalid`.
        """
        return what_if(await self.situation(group, strategy), events)

    async def situation(self, group: str, strategy: Strategy) -> Situation:
        """Return the group as it is now, for `pocketmq.balance.what_if`; see `situation_of`."""
        return situation_of(await self.facts(group), strategy)

    async def rebalance(self, group: str) -> Gathered[None]:
        """Ask all members of a group to rebalance now, through every broker.

        Brokers notify a group's members whenever a client leaves it. The admin leaves without ever
        having been a member, which changes nothing else. Raises `Absent`.
        """
        header = membership.UNREGISTER_CLIENT.header(
            client_id=self._wire.session.client_id, consumer_group=group
        )
        places = await self._groups.places(group)
        return await self._wire.tell_each(places, membership.UNREGISTER_CLIENT, header)

    async def _progress(self, group: str) -> GroupProgress:
        """Return a group's progress, empty if no broker answers."""
        try:
            return await self._groups.progress(group)
        except MQError:
            return GroupProgress({}, 0.0)

    async def _queues(self, topic: str) -> tuple[MessageQueue, ...]:
        try:
            route = await self._topics.route(topic)
        except RouteNotFound:
            return ()
        return tuple(sort_queues(route.subscribe_queues(topic)))


def _topics_of(views: Gathered[rows.ConsumerConnections], running: Running) -> list[str]:
    named = {topic for view in views.values() for topic in view.subscription_table}
    named |= {each.topic for info in running.members.values() for each in info.subscription_set}
    return sorted(topic for topic in named if not is_retry_topic(topic))
