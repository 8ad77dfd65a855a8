"""What changes of a group did to its queues, worked out from what its members wrote down.

Pure: deliveries, changes of owners and events in, figures out. A member is any process that writes
down what its handler got, whatever client it uses. Times are seconds of one clock.

| figure | what it is |
|---|---|
| moved | changes of hands: a queue is taken by another name than the one that had it |
| minimum | the fewest that an even assignment to the same members needs |
| silence | the longest time between two deliveries of a queue around an event |
| without owner | from a member's release of a queue to the next one's take, as they report it |
| two owners | how long the old owner still began messages after the new one had begun |
| twice | messages that were begun before |
| lost | messages that no handler finished |
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from pocketmq.balance.sticky import minimum_moves
from pocketmq.model import MessageQueue


class Delivery(NamedTuple):
    """A handler begins a message."""

    time: float
    queue: str
    offset: int
    member: str


class Hold(NamedTuple):
    """A member takes a queue or loses it."""

    time: float
    queue: str
    member: str
    taken: bool


class Happening(NamedTuple):
    """Something that befell the group, and the time until it had settled."""

    kind: str
    begin: float
    end: float
    members: tuple[str, ...]
    """Those present afterwards."""


class Record(NamedTuple):
    """All that the processes of a run wrote down."""

    queues: tuple[str, ...]
    """As `broker:number`."""
    deliveries: Sequence[Delivery]
    holds: Sequence[Hold]
    finished: Collection[tuple[str, int]]
    """Queue and offset of each message that a handler finished."""
    sent: Collection[tuple[str, int]]
    """Queue and offset of each message that a broker acknowledged."""
    happenings: Sequence[Happening]


class Figures(NamedTuple):
    """What one happening did."""

    kind: str
    moved: int
    minimum: int
    silence_moved: tuple[float, ...]
    """One for each queue that was taken by a member."""
    silence_unmoved: tuple[float, ...]
    without_owner: tuple[float, ...]
    two_owners: tuple[float, ...]
    """One for each queue that was taken by a member; mostly 0."""
    twice: int


def examine(record: Record) -> list[Figures]:
    """Return the figures of each happening."""
    by_queue: dict[str, list[Delivery]] = defaultdict(list)
    for each in sorted(record.deliveries):
        by_queue[each.queue].append(each)
    holds = sorted(record.holds)
    again = repeated(record.deliveries)
    return [_examine_one(record.queues, by_queue, holds, again, each) for each in record.happenings]


def lost(record: Record) -> set[tuple[str, int]]:
    """Return the acknowledged messages that no handler finished."""
    return set(record.sent) - set(record.finished)


def repeated(deliveries: Iterable[Delivery]) -> list[Delivery]:
    """Return the deliveries of messages that had been delivered before."""
    seen: set[tuple[str, int]] = set()
    again = []
    for each in sorted(deliveries):
        if (each.queue, each.offset) in seen:
            again.append(each)
        seen.add((each.queue, each.offset))
    return again


def percentile(values: Iterable[float], part: float) -> float:
    """Return the value that `part` of all do not exceed; 0 if there is none."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def _examine_one(
    queues: Sequence[str],
    by_queue: dict[str, list[Delivery]],
    holds: Sequence[Hold],
    again: Sequence[Delivery],
    happening: Happening,
) -> Figures:
    begin, end = happening.begin, happening.end
    before = owners_at(holds, begin)
    inside = [each for each in holds if begin <= each.time <= end]
    owner, moved = dict(before), 0
    for each in inside:
        if each.taken:
            moved += owner.get(each.queue, each.member) != each.member
            owner[each.queue] = each.member
    taken = {each.queue for each in inside if each.taken}
    parted = {queue: _around(by_queue.get(queue, []), begin, end) for queue in queues}
    return Figures(
        kind=happening.kind,
        moved=moved,
        minimum=_minimum(queues, happening.members, before),
        silence_moved=tuple(_silence(parted[queue], begin, end) for queue in sorted(taken)),
        silence_unmoved=tuple(
            _silence(parted[queue], begin, end) for queue in queues if queue not in taken
        ),
        without_owner=tuple(_ownerless(inside)),
        two_owners=tuple(
            _overlap(parted[queue], [each for each in inside if each.queue == queue], end)
            for queue in sorted(taken)
        ),
        twice=sum(begin <= each.time <= end for each in again),
    )


def owners_at(holds: Sequence[Hold], time: float) -> dict[str, str]:
    """Return who took each queue last before a time, whether it still has it or not."""
    return {each.queue: each.member for each in holds if each.taken and each.time < time}


def _minimum(queues: Sequence[str], members: Sequence[str], owners: dict[str, str]) -> int:
    named = {queue: _as_queue(queue) for queue in queues}
    previous = {named[queue]: owner for queue, owner in owners.items() if queue in named}
    return minimum_moves({"": list(named.values())}, members, previous)


def _as_queue(text: str) -> MessageQueue:
    broker, _, number = text.rpartition(":")
    return MessageQueue("", broker, int(number))


def _around(deliveries: Sequence[Delivery], begin: float, end: float) -> list[Delivery]:
    """Return the deliveries of a time, and the last one before it."""
    earlier = [each for each in deliveries if each.time < begin]
    return [*earlier[-1:], *(each for each in deliveries if begin <= each.time <= end)]


def _silence(deliveries: Sequence[Delivery], begin: float, end: float) -> float:
    times = [each.time for each in deliveries] or [begin]
    gaps = [later - sooner for sooner, later in itertools.pairwise(times)]
    return max([*gaps, end - times[-1]])


def _ownerless(holds: Sequence[Hold]) -> list[float]:
    """Return for each queue that was lost how long it took until a member took it.

    0 if its new owner reported first: the two write at the same time.
    """
    found = []
    for queue in {each.queue for each in holds}:
        lost_at = [each.time for each in holds if each.queue == queue and not each.taken]
        taken_at = [each.time for each in holds if each.queue == queue and each.taken]
        if lost_at and taken_at:
            found.append(max(0.0, taken_at[-1] - lost_at[-1]))
    return found


def _overlap(deliveries: Sequence[Delivery], holds: Sequence[Hold], end: float) -> float:
    """Return how long others began messages after a new owner had begun, at the worst take."""
    takes = [each for each in holds if each.taken]
    ends = [*(each.time for each in takes[1:]), end]
    longest = 0.0
    for take, until in zip(takes, ends, strict=True):
        since = [each for each in deliveries if take.time <= each.time <= until]
        first = next((each.time for each in since if each.member == take.member), until)
        late = [each.time for each in since if each.member != take.member and each.time > first]
        longest = max(longest, max(late, default=first) - first)
    return longest
