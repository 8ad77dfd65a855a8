"""The health report: for each group the history of its queues, and its numbers."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable
from itertools import pairwise

import msgspec

from pocketmq import RebalanceEvent
from pocketmq.balance.story.handed_over import handed_over
from pocketmq.balance.story.recorded import (
    QUIET,
    ChangeOfHands,
    RecordedRebalance,
    handovers,
    rebalances,
    returned,
)
from pocketmq.balance.story.spans import Span, overlaps, rest, total
from pocketmq.balance.story.timeline import Owned, OwnershipTimeline, finished, timeline
from pocketmq.balance.story.whole_events import whole_events
from pocketmq.errors import InvalidInput
from pocketmq.model import QueueName
from pocketmq.pipelines.health.figures import GroupLag, HandoverFigures, handover_figures, lag_of
from pocketmq.pipelines.health.observed import (
    AND_MORE,
    BadLine,
    DeliveryRecord,
    Observations,
    OffsetSample,
    first_bad,
    incomplete,
)

RETRY = "%RETRY%"
FLAP_WITHIN = 60.0
"""A queue that returns to a member within this many seconds is flapping."""


class QueueHealth(msgspec.Struct, frozen=True):
    """The history of one queue."""

    queue: QueueName
    owners: list[Owned]
    unowned: list[Span]
    shared: list[Span]
    absent: list[Span]
    unowned_seconds: float
    shared_seconds: float
    moves: int
    duplicates: int | None
    untold: list[Span]
    """When it was with foreign members that record no events."""


class GroupHealth(msgspec.Struct, frozen=True):
    """The history of one group, and its numbers."""

    group: str
    strategies: list[str]
    members: list[str]
    began: float
    ended: float
    queues: list[QueueHealth]
    handovers: list[ChangeOfHands]
    rebalances: list[RecordedRebalance]
    flapping: list[ChangeOfHands]
    lag: GroupLag | None
    deliveries: int | None
    duplicates: int | None
    modes: list[str]
    """How its members shared queues: `java`, `sticky`, `mixed`, in the order they came."""
    figures: HandoverFigures

    @property
    def moved(self) -> int:
        """The number of queues moved in rebalances."""
        return sum(one.moved for one in self.rebalances)

    @property
    def minimum(self) -> int:
        """The minimum number of moved queues."""
        return sum(one.minimum for one in self.rebalances)

    @property
    def unowned_seconds(self) -> float:
        """Seconds without owner, summed over queues."""
        return sum(queue.unowned_seconds for queue in self.queues)

    @property
    def shared_seconds(self) -> float:
        """Seconds with two owners, summed over queues."""
        return sum(queue.shared_seconds for queue in self.queues)

    @property
    def longest_pause(self) -> float:
        """The longest time a queue waited for its next owner."""
        return max((move.pause for move in self.handovers), default=0.0)


class HealthReport(msgspec.Struct, frozen=True):
    """All groups, and unreadable lines."""

    groups: list[GroupHealth]
    bad: list[BadLine]


def examine(
    observed: Observations, *, groups: Iterable[str] = (), quiet: float = QUIET
) -> HealthReport:
    """Return the report of all groups, or of those named.

    A rebalance ends after `quiet` seconds without a change.

    Raises `InvalidInput` if there is no event, or none of a group that was named.
    """
    by_group: dict[str, list[RebalanceEvent]] = defaultdict(list)
    events, alone = whole_events(observed.events)
    bad = [*first_bad([incomplete(each) for each in alone]), *observed.bad]
    for event in events:
        if not event.topic.startswith(RETRY):  # every group has one; it moves with the others
            by_group[event.group].append(event)
    wanted = list(groups) or sorted(by_group)
    check_found(wanted, by_group, bad)
    samples: dict[str, list[OffsetSample]] = defaultdict(list)
    for sample in observed.offsets:
        samples[sample.group].append(sample)
    delivered: dict[str, list[DeliveryRecord]] = defaultdict(list)
    for delivery in observed.deliveries or ():
        delivered[delivery.group].append(delivery)
    recorded = observed.deliveries is not None
    reports = [
        examine_group(
            name, by_group[name], samples[name], delivered[name] if recorded else None, quiet
        )
        for name in wanted
    ]
    return HealthReport(reports, bad)


def check_found(wanted: list[str], found: Container[str], bad: list[BadLine]) -> None:
    """Raise `InvalidInput` if no group is wanted, or one of which there is no event."""
    if not wanted:
        raise InvalidInput(f"no rebalance events found{_unread(bad)}")
    for name in wanted:
        if name not in found:
            raise InvalidInput(f"no rebalance events of group {name}{_unread(bad)}")


def _unread(bad: list[BadLine]) -> str:
    """Return a hint about unreadable lines, which may be why nothing was found."""
    if not bad:
        return ""
    lines = "1 line" if len(bad) == 1 else f"{len(bad):,} lines"
    if bad[-1].where == AND_MORE:
        lines = f"more than {len(bad) - 1:,} lines"
    return f"; {lines} could not be read, first: {bad[0].where}: {bad[0].reason}"


def examine_group(
    name: str,
    events: list[RebalanceEvent],
    samples: list[OffsetSample],
    delivered: list[DeliveryRecord] | None,
    quiet: float = QUIET,
) -> GroupHealth:
    """Return one group's health from its observations."""
    signs: dict[str, float] = {}
    for one in delivered or ():
        signs[one.client_id] = max(one.time, signs.get(one.client_id, 0.0))
    last = max(
        max((sample.time for sample in samples), default=0.0), max(signs.values(), default=0.0)
    )
    story = timeline(events, signs, last)
    twice = None if delivered is None else _duplicates(delivered)
    told = handed_over(events)
    moves = _with_duplicates(handovers(story, told), twice)
    counts = Counter([move.queue for move in moves])
    return GroupHealth(
        group=name,
        strategies=sorted({event.strategy for event in events}),
        members=sorted({event.client_id for event in events}),
        began=story.began,
        ended=story.ended,
        queues=[_queue(queue, story, counts[queue], twice) for queue in story.owned],
        handovers=moves,
        rebalances=rebalances(story, events, quiet),
        flapping=returned(moves, FLAP_WITHIN),
        lag=lag_of(samples),
        deliveries=None if delivered is None else len(delivered),
        duplicates=None if twice is None else sum(len(m) - 1 for q in twice.values() for m in q),
        modes=list(dict.fromkeys(e.mode for e in sorted(events, key=finished))),
        figures=handover_figures(moves, told),
    )


# For each queue the messages delivered more than once: to which members, by time.
Twice = dict[QueueName, list[list[str]]]


def _duplicates(delivered: list[DeliveryRecord]) -> Twice:
    given: dict[tuple[QueueName, int], list[DeliveryRecord]] = defaultdict(list)
    for one in delivered:
        given[one.name, one.offset].append(one)
    twice: Twice = defaultdict(list)
    for (queue, _), times in given.items():
        if len(times) > 1:
            twice[queue].append([t.client_id for t in sorted(times, key=lambda d: d.time)])
    return twice


def _with_duplicates(moves: list[ChangeOfHands], twice: Twice | None) -> list[ChangeOfHands]:
    if twice is None:
        return moves
    given = Counter(
        (queue, pair)
        for queue, messages in twice.items()
        for members in messages
        for pair in set(pairwise(members))
    )
    return [
        msgspec.structs.replace(move, duplicates=given[move.queue, (move.left, move.took)])
        for move in moves
    ]


def _queue(
    queue: QueueName, story: OwnershipTimeline, moves: int, twice: Twice | None
) -> QueueHealth:
    owners = story.owned[queue]
    absent = story.absent.get(queue, [])
    held = [(one.since, one.until) for one in owners]
    unowned = rest(story.known[queue], [*held, *absent, *story.untold.get(queue, ())])
    shared = overlaps(held)
    return QueueHealth(
        queue=queue,
        owners=owners,
        unowned=unowned,
        shared=shared,
        absent=absent,
        untold=story.untold.get(queue, []),
        unowned_seconds=total(unowned),
        shared_seconds=total(shared),
        moves=moves,
        duplicates=None if twice is None else sum(len(m) - 1 for m in twice.get(queue, ())),
    )
