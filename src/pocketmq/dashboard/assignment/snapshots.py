"""Snapshots of a group: facts in, one value out that all viewers share.

Owns the history of the group while it is polled. Queries the admin alone; large groups are
processed in a thread, so that other pages stay fast. What is unknown stays unknown: a queue without
a known owner is unowned only if every member and every broker has responded.
"""

import asyncio
import time
from collections.abc import Collection
from typing import Any

import msgspec

from pocketmq.admin.admin import Admin
from pocketmq.admin.explaining import Explanation, explain
from pocketmq.admin.facts import GroupFacts, is_push
from pocketmq.admin.findings import GroupFinding
from pocketmq.balance.story.episode import Rebalance
from pocketmq.balance.story.observation import GroupObservation, KnownOwners
from pocketmq.balance.story.spans import Span
from pocketmq.dashboard.assignment.observed import Lags, ObservedHistory, Series
from pocketmq.dashboard.assignment.queue_map import QueueMapData, Seats, live_map
from pocketmq.dashboard.assignment.timeline_text import TimelineText
from pocketmq.dashboard.polling import Poller, Pollers
from pocketmq.dashboard.remembered import Settling
from pocketmq.model import MessageModel, MessageQueue
from pocketmq.model.names import is_retry_topic

INTERVAL = 1.0
"""Seconds between two polls."""
RESTS = 2.0
"""The pause after a poll is at least this many times its duration."""
PATIENCE = 2.0
"""Seconds for a member to respond; half of it while one has not responded before."""
QUEUES_A_SECOND = 2000
"""Queues for which a member gets another second to respond."""
LARGE = 1000
"""Queues above which a snapshot is processed in a thread."""
TOP = 5
"""Queues whose lag is drawn: those with the largest."""
_OF_OWNERS = {"unowned queues", "owned twice", "idle members"}
_POINTS = 240
"""Points per line in the browser."""


class GroupSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A group at one time, with its history."""

    at: float
    facts: GroupFacts
    story: Explanation
    moment: GroupObservation
    queue_map: QueueMapData
    findings: tuple[GroupFinding, ...]
    passing: tuple[GroupFinding, ...] = ()
    """Findings that are normal for now, since the group has just changed."""
    rebalances: list[Rebalance]
    timeline: list[dict[str, Any]]
    """The rebalances as the browser shows them."""
    open_spans: list[Span]
    """Times in which some queue had no owner."""
    unobserved: list[Span]
    """Times in which the group was not observed."""
    began: float
    """When polling began."""
    total_lag: Series
    top_lags: list[tuple[MessageQueue, Series]]


class SnapshotTaker:
    """Takes snapshots of one group, one after another, never two at once.

    `_digest` may run in a thread, so it alone touches history, lags and seats, and the next poll
    starts only after it has returned.
    """

    def __init__(self, admin: Admin, group: str) -> None:
        self._admin = admin
        self._group = group
        self._history = ObservedHistory()
        self._lags = Lags()
        self._seats = Seats()
        self._timeline_text = TimelineText()
        self._settling = Settling()
        self._last: GroupSnapshot | None = None

    async def take(self) -> GroupSnapshot:
        """Take one. Raises `Absent` for a group that no broker knows, and `TransportError`."""
        facts = await self._admin.balance.facts(self._group, patience=self._patience())
        if max(len(facts.progress), sum(map(len, facts.queues.values()))) > LARGE:
            self._last = await asyncio.to_thread(self._digest, facts, self._now())
        else:
            self._last = self._digest(facts, self._now())
        return self._last

    def _now(self) -> float:
        """Return the time, which never goes back here even if the clock is set back."""
        return max(time.time(), 0.0 if self._last is None else self._last.at)

    def _patience(self) -> float:
        if self._last is None:
            return 2 * PATIENCE  # the size of the group is not known yet
        patience = PATIENCE + len(self._last.moment.owners) / QUEUES_A_SECOND
        return round(patience / 2 if self._last.facts.silent else patience, 1)

    def _digest(self, facts: GroupFacts, at: float) -> GroupSnapshot:
        facts = with_queues(facts)
        story = explain(facts)
        now = moment_of(facts, at, story.fits)
        if self._last is not None and not now.members and not self._last.moment.shared:
            now = msgspec.structs.replace(now, shared=False)  # no member is left to report it
        if self._history.observe(now) and self._last is not None:
            self._lags.lose_sight(self._last.at)
        self._lags.add(at, now.lags, list(now.owners))
        shape = (now.members, frozenset(now.owners))
        lasting, passing = self._settling.sort(honest(story.findings, now, facts.silent), shape, at)
        lags, rebalances = self._lags, self._history.entries()
        timeline, open_spans = self._timeline_text.rows(rebalances, at)
        top = sorted(now.lags, key=lambda queue: now.lags[queue], reverse=True)[:TOP]
        return GroupSnapshot(
            at=at,
            facts=facts,
            story=story,
            moment=now,
            queue_map=live_map(story, now, self._history.current, self._seats.take(now.members)),
            findings=lasting,
            passing=passing,
            rebalances=rebalances,
            timeline=timeline,
            open_spans=open_spans,
            unobserved=list(self._history.gaps),
            began=at if self._last is None else self._last.began,
            total_lag=thinned(lags.total()),
            top_lags=[(queue, thinned(lags.of(queue))) for queue in top if now.lags[queue] > 0],
        )


def poller_of(pollers: Pollers, admin: Admin, group: str) -> Poller[GroupSnapshot]:
    """Return the one poller of a group that all viewers and the sampler share."""
    return pollers.of(("assignment", group), SnapshotTaker(admin, group).take, INTERVAL, RESTS)


def with_queues(facts: GroupFacts) -> GroupFacts:
    """Add the queues an offline group has consumed: no member reports subscriptions."""
    if facts.queues or facts.members():
        return facts
    queues: dict[str, list[MessageQueue]] = {}
    for queue in facts.progress:
        if not is_retry_topic(queue.topic):
            queues.setdefault(queue.topic, []).append(queue)
    return msgspec.structs.replace(
        facts, queues={topic: tuple(queues[topic]) for topic in sorted(queues)}
    )


def honest(
    findings: tuple[GroupFinding, ...], now: GroupObservation, silent: Collection[str]
) -> list[GroupFinding]:
    """Drop findings that are uncertain while members do not report their queues.

    Findings about owners are dropped, too, where queues have no owners.
    """
    if not now.shared:
        return [each for each in findings if each.kind not in _OF_OWNERS]
    if not now.untold or None not in now.owners.values():
        return list(findings)
    known = [each for each in findings if each.kind not in _OF_OWNERS - {"owned twice"}]
    quiet = [member for member in sorted(now.untold) if member not in silent]
    return known + [
        GroupFinding("queues not reported", member, now.untold[member],
                "the owners of the rest are unknown; a queue whose lag falls is consumed")
        for member in quiet
    ]  # fmt: skip


def thinned(series: Series) -> Series:
    """Drop points, never the newest nor the first of those unknown, to keep drawing fast."""
    step = -(-len(series) // _POINTS)
    if step < 2:
        return series
    kept: Series = []
    for end in range((len(series) - 1) % step + 1, len(series) + 1, step):
        part = series[max(0, end - step) : end]
        lost = next((point for point in part[:-1] if point[1] is None), None)
        if lost is not None and (not kept or kept[-1][1] is not None):
            kept.append(lost)
        kept.append(part[-1])
    return kept


TELLS_NOTHING = "it responds, but does not report queues, as Java pull consumers do"

_STRATEGY = "allocateMessageQueueStrategy"
_JAVA_STRATEGIES = {
    "AllocateMessageQueueAveragely": "AVG",
    "AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    "AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
    "AllocateMessageQueueByConfig": "CONFIG",
    "AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
}


def moment_of(facts: GroupFacts, at: float, fits: str | None = None) -> GroupObservation:
    """Return what the history needs of the facts; `fits` is the strategy that explains them."""
    holders = facts.holders()
    untold = facts.silent
    if any(queue not in holders for queues in facts.queues.values() for queue in queues):
        untold = untold | untold_by(facts)
    # A member that joined while we queried is only known by its own response. The strategy was
    # found without it, so it does not say that the group has settled.
    listed = frozenset(facts.members())
    members = listed.union(facts.running, facts.silent)
    nobody: KnownOwners = None if untold or facts.unseen_brokers else ()
    owners: dict[MessageQueue, KnownOwners] = {}
    lags = {}
    for queues in facts.queues.values():
        for queue in queues:
            held_by = holders.get(queue)
            owners[queue] = nobody if held_by is None else tuple(held_by)
            progress = facts.progress.get(queue)
            if progress is not None:
                lags[queue] = progress.broker_offset - progress.consumer_offset
    return GroupObservation(
        at=at,
        members=members,
        untold=untold,
        brokers=frozenset((*facts.views, *(queue.broker_name for queue in owners))),
        unseen=frozenset(facts.unseen_brokers),
        owners=owners,
        lags=lags,
        strategies=_strategies(facts),
        fits=fits if members == listed else None,
        shared=facts.model() is not MessageModel.BROADCASTING and not pops(facts),
    )


def pops(facts: GroupFacts) -> bool:
    """Return whether the group consumes by POP, so that queues have no owner."""
    return any(info.mq_pop_table for info in facts.running.values())


def untold_by(facts: GroupFacts) -> dict[str, str]:
    """Return members that respond without reporting their queues."""
    return {
        member: TELLS_NOTHING
        for member, info in facts.running.items()
        if not is_push(info) and not info.mq_table and not info.mq_pop_table
    }


def _strategies(facts: GroupFacts) -> dict[str, str]:
    told = {}
    for member, info in facts.running.items():
        text = info.properties.get(_STRATEGY, "")
        if text:
            # Java sends a class and an object id: a.b.AllocateMessageQueueAveragely@1f2e
            name = text.partition("@")[0].rpartition(".")[2]
            told[member] = _JAVA_STRATEGIES.get(name, name)
    return told
