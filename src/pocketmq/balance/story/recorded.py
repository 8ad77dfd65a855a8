"""Queues that changed hands, gathered into rebalances of the whole group, from members' events.

Members rebalance each for themselves; what they do until every queue has one owner again, or
within a short time of one another, is one rebalance of the group. How many queues moved is compared
with how few would have had to.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from pocketmq.balance.story import timeline
from pocketmq.balance.story.handed_over import HandedOver, on_one_machine
from pocketmq.balance.story.over_time import OwnersAt, OwnersOverTime
from pocketmq.balance.what_if.movement import moves_between
from pocketmq.balance.what_if.situation import spread
from pocketmq.model import QueueName, handover_version
from pocketmq.model.rebalance_event import RebalanceEvent

QUIET = 2.0
"""Seconds without any change that end a rebalance of the group."""
SETTLED_QUIET = 0.3
"""Seconds that are enough where every queue has one owner."""
_JUST_AFTER = 1e-6


class ChangeOfHands(msgspec.Struct, frozen=True):
    """A queue that went from one member to another.

    `pause` is the time without an owner, `overlap` the time with both; `duplicates` counts messages
    that both handled, None where handled messages were not recorded. `kind`, `offset` and
    `draining` are what members told of the hand-over, None where they did not.
    """

    queue: QueueName
    left: str
    took: str
    at: float
    pause: float
    overlap: float
    died: bool
    duplicates: int | None = None
    kind: str | None = None
    offset: int | None = None
    draining: float | None = None
    """Seconds until the giver had finished its last message."""
    one_clock: bool = True
    """Whether both ran on one machine, by their ids; else the times include their clocks'
    difference."""


class Evenness(msgspec.Struct, frozen=True):
    """How many queues most and fewest members have: of each topic, and of all together."""

    topics: dict[str, int]
    group: int
    unowned: int


class RecordedRebalance(msgspec.Struct, frozen=True):
    """One rebalance of the whole group."""

    since: float
    until: float
    triggers: list[str]
    joined: list[str]
    left: list[str]
    died: list[str]
    brokers_lost: list[str]
    brokers_back: list[str]
    moved: int
    minimum: int
    """The fewest moves to an assignment as even as the one reached: topic by topic, or over all
    topics where members told it."""
    first_taken: int
    after: Evenness

    @property
    def cause(self) -> str:
        """The reason, as far as the events show it."""
        parts = [
            f"{'+'.join(names)} {what}"
            for names, what in (
                (self.joined, "joined"),
                (self.left, "left"),
                (self.died, "died"),
                (self.brokers_lost, "lost"),
                (self.brokers_back, "came"),
            )
            if names
        ]
        return ", ".join(parts) or ", ".join(self.triggers) or "unknown"


def handovers(
    story: timeline.OwnershipTimeline, told: Iterable[HandedOver] = ()
) -> list[ChangeOfHands]:
    """List every change of hands, in order of time, with what members reported of it.

    Those to and from foreign members that record no events are unknown, and left out.
    """
    known = {(one.queue, one.heir, one.started): one for one in told}
    found = []
    for queue, spans in story.owned.items():
        for earlier, later in pairwise(spans):
            if earlier.member == later.member:
                continue
            untold = story.untold.get(queue, ())
            if any(earlier.until <= since and until <= later.since for since, until in untold):
                continue
            gap = later.since - earlier.until
            away = sum(
                max(0.0, min(until, later.since) - max(since, earlier.until))
                for since, until in story.absent.get(queue, ())
            )
            one = known.get((queue, later.member, later.since))
            found.append(
                ChangeOfHands(
                    queue, earlier.member, later.member, later.since,
                    pause=max(0.0, gap - away),
                    overlap=max(0.0, min(earlier.until, later.until) - later.since),
                    died=earlier.ended == timeline.DIED,
                    kind=None if one is None else one.kind,
                    offset=None if one is None else one.offset,
                    draining=None if one is None else one.draining,
                    one_clock=on_one_machine(earlier.member, later.member),
                )
            )  # fmt: skip
    return sorted(found, key=lambda move: (move.at, move.queue))


class _Gathered(msgspec.Struct, frozen=True):
    """A rebalance that may still be in progress."""

    since: float
    until: float
    dead: set[str]


def rebalances(
    story: timeline.OwnershipTimeline, events: Sequence[RebalanceEvent], quiet: float = QUIET
) -> list[RecordedRebalance]:
    """Gather the changes into rebalances of the group, and measure each.

    Goes through the story once, in order of time.
    """
    owners = OwnersOverTime(story)
    told_by = _Tellers(events)
    found: list[RecordedRebalance] = []
    before: OwnersAt = {}
    for gathered, after in _gathered(story, owners, quiet):
        told = told_by.between(gathered.since - _JUST_AFTER, gathered.until + _JUST_AFTER)
        found.append(_measured(gathered, before, after, told))
        before = after
    return found


def _gathered(
    story: timeline.OwnershipTimeline, owners: OwnersOverTime, quiet: float
) -> Iterator[tuple[_Gathered, OwnersAt]]:
    """Yield each rebalance with who owns what when it is over."""
    now: _Gathered | None = None
    for time, dead in _changes(story):
        if now is not None and (gap := time - now.until) > SETTLED_QUIET:
            after = owners.owners_at(now.until + _JUST_AFTER)
            if gap > quiet or owners.settled_at(time - gap / 2):
                yield now, after
                now = None
        if now is None:
            now = _Gathered(time, time, dead)
        else:
            now = _Gathered(now.since, time, now.dead | dead)
    if now is not None:
        yield now, owners.owners_at(min(now.until + _JUST_AFTER, max(story.ended, now.until)))


def _changes(story: timeline.OwnershipTimeline) -> list[tuple[float, set[str]]]:
    """List the times at which queues came or went, each with the members then known to be dead."""
    times: dict[float, set[str]] = defaultdict(set)
    for spans in story.owned.values():
        for one in spans:
            times[one.since]  # a time without deaths
            if one.ended == timeline.DIED and one.noticed is not None:
                times[one.noticed].add(one.member)
            elif one.ended != timeline.HELD:
                times[one.until]
    return sorted(times.items(), key=lambda change: change[0])


class _Tellers:
    """The events that changed something, read for one stretch of time after another."""

    def __init__(self, events: Sequence[RebalanceEvent]) -> None:
        self._events = sorted([(_last_change(e), e) for e in events if e.changed], key=_time)
        self._next = 0

    def between(self, since: float, until: float) -> list[RebalanceEvent]:
        """Return the events whose last change was in that time."""
        told = []
        while self._next < len(self._events):
            at, event = self._events[self._next]
            if at > until:
                break
            if at >= since:
                told.append(event)
            self._next += 1
        return told


def _last_change(event: RebalanceEvent) -> float:
    """Return when a member last took or released a queue in an event.

    An event that tells of hand-overs ends later than they do: it waits for what is drained.
    """
    me = event.client_id
    told = [
        at
        for each in event.handovers
        for who, at in ((each.giver, each.stopped), (each.heir, each.started))
        if who == me and at is not None
    ]
    return max(told, default=timeline.finished(event))


def _time(pair: tuple[float, RebalanceEvent]) -> float:
    return pair[0]


def _triggers(told: Iterable[RebalanceEvent]) -> list[str]:
    """Return the triggers of events, the most frequent first."""
    triggers = Counter([name for event in told for name in event.trigger.split(", ")])
    return [name for name, _ in triggers.most_common()]


def _measured(
    gathered: _Gathered, before: OwnersAt, after: OwnersAt, told: Sequence[RebalanceEvent]
) -> RecordedRebalance:
    members = {owner for owner in after.values() if owner is not None}
    old_members = {owner for owner in before.values() if owner is not None}
    # An unowned queue is taken, not moved; and a group that ends moves nothing: it has no member
    # left to move a queue to.
    had = {queue: (owner,) for queue, owner in before.items() if owner is not None}
    has = {queue: () if owner is None else (owner,) for queue, owner in after.items()}
    over_all = all(handover_version(member) is not None for member in members)
    moves, minimum = moves_between(had, has, members, over_all=over_all) if members else ([], 0)
    # Members know the owners at the time of each change, so they know of moves that the first and
    # the last state do not show. What they expect is not what had to be where less was done.
    known = max((event.minimum or 0 for event in told), default=0)
    minimum = min(max(minimum, known), len(moves))
    had_brokers, has_brokers = {q.broker for q in before}, {q.broker for q in after}
    return RecordedRebalance(
        since=gathered.since,
        until=gathered.until,
        triggers=_triggers(told),
        joined=sorted(members - old_members),
        left=sorted(old_members - members - gathered.dead),
        died=sorted((old_members - members) & gathered.dead),
        brokers_lost=sorted(had_brokers - has_brokers),
        brokers_back=sorted(has_brokers - had_brokers) if before else [],
        moved=len(moves),
        minimum=minimum,
        first_taken=sum(owner is not None and queue not in had for queue, owner in after.items()),
        after=_balance(after),
    )


def _balance(owners: OwnersAt) -> Evenness:
    """Measure how evenly queues are shared among those that have any."""
    members = {owner for owner in owners.values() if owner is not None}
    counts: dict[str, Counter[str | None]] = defaultdict(Counter)
    for queue, owner in owners.items():
        counts[queue.topic][owner] += 1
    total = Counter(owners.values())
    topics = {topic: spread(counts[topic], members) for topic in sorted(counts)}
    return Evenness(topics, spread(total, members), total[None])


def returned(moves: Sequence[ChangeOfHands], within: float) -> list[ChangeOfHands]:
    """Return the moves by which a queue came back to a member that had lost it shortly before."""
    lost: dict[tuple[QueueName, str], float] = {}
    found = []
    for move in moves:
        when = lost.get((move.queue, move.took))
        if when is not None and move.at - when <= within:
            found.append(move)
        lost[move.queue, move.left] = move.at
    return found
