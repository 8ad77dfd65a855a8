"""The data of pages: queries to the cluster, each polled once for all viewers.

A server that did not respond is named in `missing` of a view; its values are shown as unknown,
never as 0.
"""

import asyncio
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

import msgspec

from pocketmq.admin.admin import Admin
from pocketmq.admin.brokers import BrokerStatus
from pocketmq.admin.explaining import Explanation, explain
from pocketmq.admin.facts import GroupFacts
from pocketmq.admin.findings import GroupFinding
from pocketmq.admin.gathered import Missing, ServerPlace
from pocketmq.admin.overview import Glance
from pocketmq.admin.sticky_story import StickyStory
from pocketmq.admin.topics import TopicStatus
from pocketmq.balance.story.totals import HandoverTotals
from pocketmq.dashboard.access_view import AccessView, read_access
from pocketmq.dashboard.event_reader import EventReader
from pocketmq.dashboard.polling import WANTED_FOR, Poller, Pollers
from pocketmq.dashboard.recording import Recorder
from pocketmq.dashboard.remembered import BrokerRoll, Settling
from pocketmq.errors import Absent, MQError
from pocketmq.model import GroupConfig, TopicConfig, TopicRoute, handover_version
from pocketmq.model import names as topic_names
from pocketmq.protocol.requests.client_calls import RunningInfo
from pocketmq.protocol.requests.groups import ProducerInfo

PATIENCE = 2.0
"""Seconds for a member to report its hand-overs to a monitor."""
UNLISTED = "no name server lists it"


class BrokerView(msgspec.Struct, frozen=True):
    """A broker and its status; None if it did not respond, and what is wrong with it."""

    place: ServerPlace
    status: BrokerStatus | None
    problem: str | None = None


class BrokerDetail(msgspec.Struct, frozen=True):
    """The settings and figures of one broker, by RocketMQ's names."""

    broker: str
    settings: dict[str, str]
    figures: dict[str, str]


class TopicsView(msgspec.Struct, frozen=True):
    """All topics with their settings by broker."""

    names: list[str]
    configs: dict[str, dict[str, TopicConfig]]
    own: frozenset[str]
    """Topics that brokers create for themselves, named after them or their cluster."""
    missing: tuple[str, ...]


class GroupsView(msgspec.Struct, frozen=True):
    """All groups at a glance."""

    groups: list[Glance]
    missing: tuple[str, ...]


class ProducersView(msgspec.Struct, frozen=True):
    """All producers: group, client, and the brokers that see it."""

    producers: list[tuple[str, ProducerInfo, tuple[str, ...]]]
    missing: tuple[str, ...]


class TopicView(msgspec.Struct, frozen=True):
    """One topic: its route, its queues, its consumer groups."""

    route: TopicRoute
    status: TopicStatus | None
    groups: tuple[str, ...]
    missing: tuple[str, ...]


class GroupView(msgspec.Struct, frozen=True):
    """One group: what brokers and members report, and what follows from it."""

    facts: GroupFacts
    explanation: Explanation
    passing: tuple[GroupFinding, ...] = ()
    """Findings that are normal for now, since the group has just changed."""


class Views:
    """The queries. Each returns a `Poller`; pages call its `want` while they are open."""

    def __init__(self, admin: Admin, events_topic: str | None = None) -> None:
        self._admin = admin
        self._events = None if events_topic is None else EventReader(admin, events_topic)
        self._roll = BrokerRoll()
        self.pollers = Pollers()
        self.rates = Recorder()
        """Messages per second of the cluster: `in` and `out`."""
        self.topic_rates = Recorder()
        """Messages per second into each topic."""
        self.group_lags = Recorder()
        self.group_rates = Recorder()
        """Messages per second that each group consumes."""

    @property
    def recorders(self) -> dict[str, Recorder]:
        """All figures over time, by a name for the file that keeps them."""
        return {
            "rates": self.rates,
            "topic rates": self.topic_rates,
            "group lags": self.group_lags,
            "group rates": self.group_rates,
        }

    def cluster(self) -> Poller[tuple[BrokerView, ...]]:
        """Poll all brokers, including slaves."""
        return self.pollers.of(("cluster",), self._cluster)

    def topics(self) -> Poller[TopicsView]:
        """Poll names and settings of all topics."""
        return self.pollers.of(("topics",), self._topics)

    def figures(self) -> Poller[dict[str, TopicStatus | None]]:
        """Poll the status of every topic; None where no broker responded."""
        return self.pollers.of(("figures",), self._figures)

    def groups(self) -> Poller[GroupsView]:
        """Poll all groups: members and lag."""
        return self.pollers.of(("groups",), self._groups)

    def balances(self) -> Poller[dict[str, StickyStory]]:
        """Poll the groups with hand-over: their members are asked, one after another."""
        return self.pollers.of(("balances",), self._balances, WANTED_FOR)  # once for each scrape

    def handovers(self) -> Poller[HandoverTotals] | None:
        """Poll the topic of rebalance events; None if the dashboard has none."""
        if self._events is None:
            return None
        return self.pollers.of(("handovers",), self._events.read)

    def group_configs(self) -> Poller[dict[str, dict[str, GroupConfig]]]:
        """Poll the settings of all groups, by broker."""
        return self.pollers.of(("group configs",), self._group_configs)

    def dead_letters(self) -> Poller[dict[str, TopicStatus | None]]:
        """Poll the dead letters of all groups; None where no broker responded."""
        return self.pollers.of(("dead letters",), self._dead_letters)

    def producers(self) -> Poller[ProducersView]:
        """Poll all producers."""
        return self.pollers.of(("producers",), self._producers)

    def topic(self, name: str) -> Poller[TopicView]:
        """Poll one topic."""
        return self.pollers.of(("topic", name), lambda: self._topic(name))

    def broker(self, address: str) -> Poller[BrokerDetail]:
        """Poll one broker of the cluster; no other address is asked."""
        return self.pollers.of(("broker", address), lambda: self._broker(address))

    def member(self, group: str, client: str) -> Poller[RunningInfo]:
        """Poll one member of a group."""
        ask = partial(self._admin.groups.running_info, group, client, patience=PATIENCE)
        return self.pollers.of(("member", group, client), ask)

    def access(self) -> Poller[AccessView]:
        """Poll users and rules."""
        return self.pollers.of(("access",), partial(read_access, self._admin))

    def group(self, name: str) -> Poller[GroupView]:
        """Poll one group, including its members."""
        settling = Settling()
        return self.pollers.of(("group", name), lambda: self._group(name, settling))

    async def close(self) -> None:
        """Stop polling."""
        await self.pollers.close()

    async def _cluster(self) -> tuple[BrokerView, ...]:
        listed, trouble = None, None
        try:
            listed = await self._admin.brokers.all()
        except MQError as error:  # brokers can do without name servers for a while
            trouble = error
        places = self._roll.call(listed, asyncio.get_running_loop().time())
        told = await self._admin.brokers.status_at(places)
        if trouble is not None and not told.answers:
            self.rates.add(time.time(), {"in": None, "out": None})
            raise trouble
        here = set(places if listed is None else listed)
        views = [
            BrokerView(each.place, each.value, None if each.place in here else UNLISTED)
            for each in told
        ]
        views += [BrokerView(each.place, None, str(each.error)) for each in told.missing]
        self.rates.add(time.time(), _rate(views))
        return tuple(sorted(views, key=lambda view: (view.place.broker, view.place.broker_id)))

    async def _broker(self, address: str) -> BrokerDetail:
        place = next((p for p in await self._admin.brokers.all() if p.address == address), None)
        if place is None:
            raise Absent("broker", address, "in this cluster")
        settings, status = await asyncio.gather(
            self._admin.brokers.config(address=address), self._admin.brokers.status_at([place])
        )
        return BrokerDetail(place.broker, settings.all()[0], status.all()[0].figures)

    async def _topics(self) -> TopicsView:
        names, told = await asyncio.gather(self._admin.topics.names(), self._admin.topics.configs())
        configs: dict[str, dict[str, TopicConfig]] = {}
        own: set[str] = set()
        for answer in told:
            place = answer.place
            own |= {place.broker, place.cluster, f"{place.cluster}_REPLY_TOPIC"}
            for topic, config in answer.value.items():
                configs.setdefault(topic, {})[answer.place.broker] = config
        # A new topic may be known to its broker before the name server lists it.
        return TopicsView(sorted({*names, *configs}), configs, frozenset(own), named(told.missing))

    async def _figures(self) -> dict[str, TopicStatus | None]:
        found = await self._statuses(await self._admin.topics.names())
        rates = {
            topic: None if status is None or status.missing else status.put_tps
            for topic, status in found.items()
        }
        self.topic_rates.add(time.time(), rates)
        return found

    async def _dead_letters(self) -> dict[str, TopicStatus | None]:
        names = filter(topic_names.is_dead_letter_topic, await self._admin.topics.names())
        found = await self._statuses(list(names))
        return {
            topic.removeprefix(topic_names.DLQ_PREFIX): status for topic, status in found.items()
        }

    async def _statuses(self, names: list[str]) -> dict[str, TopicStatus | None]:
        found = await asyncio.gather(*map(self._status, names))
        return dict(zip(names, found, strict=True))

    async def _groups(self) -> GroupsView:
        told = await self._admin.groups.configs()
        names = {name for table in told.values() for name in table}
        wanted = sorted(
            name
            for name in names - topic_names.SYSTEM_GROUPS
            if not topic_names.is_system_group(name)
        )
        view = GroupsView(await self._admin.overview.groups(wanted), named(told.missing))
        at = time.time()
        known = {each.group: each.progress for each in view.groups}
        self.group_lags.add(
            at, {group: None if each is None else max(0, each.lag) for group, each in known.items()}
        )
        self.group_rates.add(
            at, {group: None if each is None else each.consume_tps for group, each in known.items()}
        )
        return view

    async def _balances(self) -> dict[str, StickyStory]:
        known = self.groups().value or await self._groups()
        found = {}
        for glance in known.groups:
            ids = [each.client_id or "" for each in glance.members or ()]
            if any(handover_version(each) is not None for each in ids):
                with suppress(MQError):  # left out, never shown as 0
                    facts = await self._admin.balance.facts(glance.group, patience=PATIENCE)
                    story = explain(facts).sticky
                    if story is not None:
                        found[glance.group] = story
        return found

    async def _group_configs(self) -> dict[str, dict[str, GroupConfig]]:
        configs: dict[str, dict[str, GroupConfig]] = {}
        for answer in await self._admin.groups.configs():
            for group, config in answer.value.items():
                configs.setdefault(group, {})[answer.place.broker] = config
        return configs

    async def _producers(self) -> ProducersView:
        places = await self._admin.brokers.masters()
        found: dict[tuple[str, str | None], tuple[ProducerInfo, list[str]]] = {}
        missing = []

        async def one(place: ServerPlace) -> None:
            try:
                table = await self._admin.brokers.producers(place.address)
            except MQError as error:
                missing.append(f"{place.broker} at {place.address}: {error}")
                return
            for group, producers in table.data.items():
                for each in producers:
                    known = found.setdefault((group, each.client_id), (each, []))
                    known[1].append(place.broker)

        await asyncio.gather(*map(one, places))
        rows = [
            (group, info, tuple(sorted(brokers))) for (group, _), (info, brokers) in found.items()
        ]
        rows.sort(key=lambda row: (row[0], row[1].client_id or ""))
        return ProducersView(rows, tuple(sorted(missing)))

    async def _topic(self, name: str) -> TopicView:
        route = await self._admin.topics.route(name)
        status, told = await asyncio.gather(self._status(name), self._admin.topics.consumers(name))
        rate = None if status is None or status.missing else status.put_tps
        self.topic_rates.add(time.time(), {name: rate})
        groups = tuple(sorted({group for names in told.values() for group in names}))
        missing = (*(status.missing if status is not None else ()), *told.missing)
        return TopicView(route, status, groups, named(missing))

    async def _status(self, name: str) -> TopicStatus | None:
        try:
            return await self._admin.topics.status(name)
        except MQError:
            return None

    async def _group(self, name: str, settling: Settling) -> GroupView:
        facts = await self._admin.balance.facts(name)
        self.group_lags.add(time.time(), {name: _lag(facts)})
        told = explain(facts)
        shape = (frozenset(facts.members()), tuple(facts.queues.items()))
        now = asyncio.get_running_loop().time()
        lasting, passing = settling.sort(told.findings, shape, now)
        return GroupView(facts, msgspec.structs.replace(told, findings=lasting), passing)


def _lag(facts: GroupFacts) -> int | None:
    """Return the lag of a group, None if a broker did not respond."""
    if facts.unseen_brokers:
        return None
    behind = (each.broker_offset - each.consumer_offset for each in facts.progress.values())
    return max(0, sum(behind))


def silenced(brokers: tuple[BrokerView, ...], problem: str | None) -> tuple[BrokerView, ...]:
    """Return brokers as they are when nothing in the cluster responds: none of them does."""
    if problem is None:
        return brokers
    return tuple(BrokerView(each.place, None, problem) for each in brokers)


def named(missing: Iterable[Missing]) -> tuple[str, ...]:
    """Return the servers that did not respond, each once, with the reason."""
    return tuple(dict.fromkeys(str(each) for each in missing))


def _rate(brokers: list[BrokerView]) -> dict[str, float | None]:
    """Sum the rates of all masters; None if one of them did not respond."""
    masters = [view.status for view in brokers if view.place.is_master]
    into = [None if status is None else status.put_tps for status in masters]
    out = [None if status is None else status.get_tps for status in masters]
    return {"in": _sum(into), "out": _sum(out)}


def _sum(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
