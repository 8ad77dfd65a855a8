"""Totals of hand-overs, counted event by event and never backwards: what a monitor scrapes.

Bounded: what one side has told waits for the other side, the oldest is forgotten. Groups and kinds
come from whoever writes to a topic, so their number is limited, too.
"""

from collections import Counter

import msgspec

from pocketmq.balance.handover.instructions import HandoverKind
from pocketmq.balance.story.handed_over import LOST, MOST_APART
from pocketmq.model import MessageQueue
from pocketmq.model.rebalance_event import Handover, RebalanceEvent

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the histogram's buckets, in seconds; one more is for what is longer."""
MOST_WAITING = 10_000
MOST_GROUPS = 1_000
OTHER = "other"
"""The kind of hand-overs whose kind is unknown."""
_KINDS = frozenset(kind.value for kind in HandoverKind)

_Key = tuple[MessageQueue, str, str, int | None]


class PauseHistogram(msgspec.Struct, frozen=True):
    """Times without an owner: how many in each bucket, and their sum."""

    buckets: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    seconds: float = 0.0

    def with_pause(self, pause: float) -> "PauseHistogram":
        """Return the same with one more."""
        at = sum(pause > bound for bound in BOUNDS)
        buckets = (*self.buckets[:at], self.buckets[at] + 1, *self.buckets[at + 1 :])
        return PauseHistogram(buckets, self.seconds + pause)


class HandoverTotals(msgspec.Struct, frozen=True):
    """What was counted: hand-overs by group and kind, pauses and seconds with two owners."""

    kinds: dict[tuple[str, str], int]
    pauses: dict[str, PauseHistogram]
    two_owners: dict[str, float]


class HandoverCounter:
    """Counts the hand-overs of events, in any order. One thread at a time may use it."""

    def __init__(self, *, most_waiting: int = MOST_WAITING, most_groups: int = MOST_GROUPS) -> None:
        self._most_waiting = most_waiting
        self._most_groups = most_groups
        self._groups: set[str] = set()
        self._kinds: Counter[tuple[str, str]] = Counter()
        self._pauses: dict[str, PauseHistogram] = {}
        self._two_owners: dict[str, float] = {}
        self._stopped: dict[tuple[str, _Key], float] = {}
        self._started: dict[tuple[str, _Key], float] = {}

    def add(self, event: RebalanceEvent) -> None:
        """Count what an event tells: queues that its member took, and locks that it lost.

        Givers' records add the times, so each hand-over counts once. Pauses are those of
        hand-overs that both members told with the same queue, members and offset.
        """
        if event.group not in self._groups:
            if not event.handovers or len(self._groups) >= self._most_groups:
                return
            self._groups.add(event.group)
        for each in event.handovers:
            self._count(event, each)

    def totals(self) -> HandoverTotals:
        """Return what was counted so far."""
        return HandoverTotals(dict(self._kinds), dict(self._pauses), dict(self._two_owners))

    def _count(self, event: RebalanceEvent, told: Handover) -> None:
        group, me = event.group, event.client_id
        took = told.heir == me and told.started is not None
        if took or (told.kind == LOST and told.giver == me):
            self._kinds[group, told.kind if told.kind in _KINDS else OTHER] += 1
        if told.giver is None or told.heir is None:
            return
        key = group, (told.queue, told.giver, told.heir, told.offset)
        if took and told.started is not None:
            self._started[key] = told.started
        elif told.giver == me and told.stopped is not None:
            self._stopped[key] = told.stopped
        self._join(key)
        for waiting in (self._started, self._stopped):
            if len(waiting) > self._most_waiting:
                del waiting[next(iter(waiting))]

    def _join(self, key: tuple[str, _Key]) -> None:
        stopped, started = self._stopped.get(key), self._started.get(key)
        if stopped is None or started is None:
            return
        group, gap = key[0], started - stopped
        if abs(gap) > MOST_APART:  # of two hand-overs; the later one still waits
            del (self._stopped if gap > 0 else self._started)[key]
            return
        del self._stopped[key], self._started[key]
        self._pauses[group] = self._pauses.get(group, PauseHistogram()).with_pause(max(0.0, gap))
        if gap < 0:
            self._two_owners[group] = self._two_owners.get(group, 0.0) - gap
