"""Summaries of many topics and groups, with few requests for each."""

import asyncio

import msgspec

from pocketmq.admin.brokers import Brokers
from pocketmq.admin.gathered import Gathered, Missing, ServerPlace
from pocketmq.admin.groups import GroupProgress, Groups
from pocketmq.admin.topics import Topics
from pocketmq.admin.wire import AdminWire
from pocketmq.errors import MQError, ServerError
from pocketmq.model import ConsumeType, MessageModel
from pocketmq.protocol.requests import groups as rows
from pocketmq.protocol.requests.stats import BrokerStats, ConsumeStatsBody, StatsItem

TOPIC_PUT = "TOPIC_PUT_NUMS"
GROUP_GET = "GROUP_GET_NUMS"


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a group; None where no broker answered."""

    group: str
    members: tuple[rows.ClientConnection, ...] | None
    type: ConsumeType | None = None
    model: MessageModel | None = None
    progress: GroupProgress | None = None
    errors: tuple[str, ...] = ()

    @property
    def oldest_version(self) -> int | None:
        """The version of the oldest client, if there is any."""
        return min((each.version for each in self.members or ()), default=None)


class TrafficRate(msgspec.Struct, frozen=True):
    """Messages per second over the last minute, and in 24 hours; None if unknown."""

    tps: float | None
    day: int | None


class GroupTraffic(msgspec.Struct, frozen=True):
    """What a group consumes of a topic; lag is None if unknown."""

    group: str
    out: TrafficRate
    lag: int | None


class TopicTraffic(msgspec.Struct, frozen=True):
    """What producers send to a topic, and what each group consumes."""

    topic: str
    into: TrafficRate
    groups: tuple[GroupTraffic, ...]
    missing: tuple[Missing, ...] = ()


class Overview:
    """Summarises many topics or groups at once."""

    def __init__(self, wire: AdminWire, brokers: Brokers, topics: Topics, groups: Groups) -> None:
        self._wire = wire
        self._brokers = brokers
        self._topics = topics
        self._groups = groups

    async def groups(self, names: list[str]) -> list[Glance]:
        """Return summaries of groups; the errors of one are in its `errors`."""
        outcomes = await self._wire.together(names, self._glance)
        return [
            Glance(group=name, members=None, errors=(str(each),))
            if isinstance(each, MQError)
            else each
            for name, each in zip(names, outcomes, strict=True)
        ]

    async def traffic(self, topics: list[str]) -> list[TopicTraffic]:
        """Return the traffic of topics. Topics without a route are left out."""
        outcomes = await self._wire.together(topics, self._traffic)
        return [each for each in outcomes if not isinstance(each, MQError)]

    async def _glance(self, group: str) -> Glance:
        places = await self._groups.places(group)
        views, stats = await asyncio.gather(
            self._groups.connections_at(group, places), self._groups.stats_at(group, None, places)
        )
        errors = tuple(dict.fromkeys(str(each) for each in (*views.missing, *stats.missing)))
        online = [view for view in views.values() if view.connection_set]
        first = online[0] if online else rows.ConsumerConnections()
        return Glance(
            group=group,
            members=_members(views),
            type=first.consume_type,
            model=first.message_model,
            progress=_progress(stats),
            errors=errors,
        )

    async def _traffic(self, topic: str) -> TopicTraffic:
        places = await self._topics.places(topic)
        put, consumers = await asyncio.gather(
            self._brokers.counter(TOPIC_PUT, topic, places),
            self._topics.consumers_at(topic, places),
        )
        names = sorted({group for found in consumers.values() for group in found})
        groups = await asyncio.gather(*(self._out(topic, group, places) for group in names))
        silent = [each for each in consumers.missing if not isinstance(each.error, ServerError)]
        return TopicTraffic(topic, _flow(put), tuple(groups), tuple(silent))

    async def _out(self, topic: str, group: str, places: list[ServerPlace]) -> GroupTraffic:
        got, stats = await asyncio.gather(
            self._brokers.counter(GROUP_GET, f"{topic}@{group}", places),
            self._groups.stats_at(group, topic, places),
        )
        progress = _progress(stats)
        return GroupTraffic(group, _flow(got), None if progress is None else max(0, progress.lag))


def _members(views: Gathered[rows.ConsumerConnections]) -> tuple[rows.ClientConnection, ...] | None:
    """Return the members that any broker lists, each once; None if no broker answered."""
    if not views.answers:
        return None
    by_id = {
        each.client_id: each
        for view in views.values()
        for each in view.connection_set
        if each.client_id is not None
    }
    return tuple(by_id[client] for client in sorted(by_id))


def _progress(stats: Gathered[ConsumeStatsBody]) -> GroupProgress | None:
    """Return the sum over brokers; None unless all answered, since a part would mislead."""
    if not stats.complete:
        return None
    found = {q: each for part in stats.values() for q, each in part.offset_table.items()}
    return GroupProgress(found, sum(part.consume_tps for part in stats.values()))


def _flow(counters: Gathered[BrokerStats]) -> TrafficRate:
    """Return the sum of counters. A broker that never counted refuses: that is 0, not unknown."""
    silent = [each for each in counters.missing if not isinstance(each.error, ServerError)]
    if silent:
        return TrafficRate(None, None)
    tps = sum((each.stats_minute or StatsItem()).tps for each in counters.values())
    return TrafficRate(tps, sum(_last_day(each) for each in counters.values()))


def _last_day(stats: BrokerStats) -> int:
    """Return the sum of the longest span that has counted anything, as in Java."""
    for item in (stats.stats_day, stats.stats_hour, stats.stats_minute):
        if item is not None and item.sum != 0:
            return item.sum
    return 0
