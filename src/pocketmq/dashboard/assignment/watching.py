"""Looking at a group again and again: facts in, one value out that all viewers share.

Owns the history of the group while somebody watches. Asks the admin alone; large groups are
digested beside the loop, so that other pages stay quick.
"""

import asyncio
import time
from collections.abc import Collection
from typing import Any

import msgspec

from pocketmq.admin.admin import Admin
from pocketmq.admin.explaining import Explanation, explain
from pocketmq.admin.facts import GroupFacts
from pocketmq.admin.findings import GroupFinding
from pocketmq.balance.story.episode import Rebalance
from pocketmq.balance.story.history import History
from pocketmq.balance.story.moment import Moment
from pocketmq.balance.story.spans import Span
from pocketmq.dashboard.assignment.lags import Lags, Series
from pocketmq.dashboard.assignment.moment import moment_of
from pocketmq.dashboard.assignment.picture import Picture, Seats, live_picture
from pocketmq.dashboard.assignment.recounting import Recounting
from pocketmq.model.names import is_retry_topic
from pocketmq.model.queue import MessageQueue

INTERVAL = 1.0
"""Seconds between two looks."""
RESTS = 2.0
"""A look that takes long is followed by a pause so many times as long."""
PATIENCE = 2.0
"""Seconds for a member to answer; those that were silent before get half as long."""
QUEUES_A_SECOND = 2000
"""A member of so many queues may take a second longer to tell of them."""
LARGE = 1000
"""Queues from which on a look is digested in a thread."""
TOP = 5
"""Queues whose lag is drawn, those with most."""
_OF_OWNERS = {"unowned queues", "owned twice", "idle members"}
_POINTS = 240
"""Points of a line that a browser draws."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """A group as one look at it showed it, with what was seen before."""

    at: float
    facts: GroupFacts
    story: Explanation
    moment: Moment
    picture: Picture
    findings: tuple[GroupFinding, ...]
    rebalances: list[Rebalance]
    timeline: list[dict[str, Any]]
    """The rebalances as a browser shows them."""
    open_spans: list[Span]
    """When some queue had no owner."""
    began: float
    """When watching began."""
    total_lag: Series
    top_lags: list[tuple[MessageQueue, Series]]


class Looking:
    """Looks at one group. Looks come one after another, never two at once."""

    def __init__(self, admin: Admin, group: str) -> None:
        self._admin = admin
        self._group = group
        self._history = History()
        self._lags = Lags()
        self._seats = Seats()
        self._recounting = Recounting()
        self._last: Look | None = None

    async def look(self) -> Look:
        """Look once. Raises `Absent` for a group that no broker knows, and `TransportError`."""
        facts = await self._admin.balance.facts(self._group, patience=self._patience())
        if max(len(facts.progress), sum(map(len, facts.queues.values()))) > LARGE:
            self._last = await asyncio.to_thread(self._digest, facts, self._now())
        else:
            self._last = self._digest(facts, self._now())
        return self._last

    def _now(self) -> float:
        """Give the time, which may be set back elsewhere, but not here."""
        return max(time.time(), 0.0 if self._last is None else self._last.at)

    def _patience(self) -> float:
        if self._last is None:
            return 2 * PATIENCE  # how large the group is turns out only now
        patience = PATIENCE + len(self._last.moment.owners) / QUEUES_A_SECOND
        return round(patience / 2 if self._last.facts.silent else patience, 1)

    def _digest(self, facts: GroupFacts, at: float) -> Look:
        facts = with_queues(facts)
        story = explain(facts)
        now = moment_of(facts, at, story.strategy)
        if self._last is not None and not now.members and not self._last.moment.shared:
            now = msgspec.structs.replace(now, shared=False)  # nobody is left to tell
        self._lags.add(at, now.lags, list(now.owners))
        self._history.observe(now)
        lags, rebalances = self._lags, self._history.entries()
        timeline, open_spans = self._recounting.tell(rebalances, at)
        top = sorted(now.lags, key=lambda queue: now.lags[queue], reverse=True)[:TOP]
        return Look(
            at=at,
            facts=facts,
            story=story,
            moment=now,
            picture=live_picture(story, now, self._history, self._seats.take(now.members)),
            findings=tuple(honest(story.findings, now, facts.silent)),
            rebalances=rebalances,
            timeline=timeline,
            open_spans=open_spans,
            began=at if self._last is None else self._last.began,
            total_lag=thinned(lags.total()),
            top_lags=[(queue, thinned(lags.of(queue))) for queue in top if now.lags[queue] > 0],
        )


def with_queues(facts: GroupFacts) -> GroupFacts:
    """Have an offline group show the queues it has consumed: nobody is there to tell topics."""
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
    findings: tuple[GroupFinding, ...], now: Moment, silent: Collection[str]
) -> list[GroupFinding]:
    """Leave out what cannot be known while members do not tell which queues they hold.

    Nor can a queue be owned twice, or by nobody, where queues have no owners.
    """
    if not now.shared:
        return [each for each in findings if each.kind not in _OF_OWNERS]
    if not now.untold or None not in now.owners.values():
        return list(findings)
    known = [each for each in findings if each.kind not in _OF_OWNERS - {"owned twice"}]
    quiet = [member for member in sorted(now.untold) if member not in silent]
    return known + [
        GroupFinding("queues not told", member, now.untold[member],
                "who holds the rest is not known; see by its lag whether a queue is consumed")
        for member in quiet
    ]  # fmt: skip


def thinned(series: Series) -> Series:
    """Leave out points, never the newest, until a browser can draw them quickly."""
    step = -(-len(series) // _POINTS)
    return series if step < 2 else series[(len(series) - 1) % step :: step]
