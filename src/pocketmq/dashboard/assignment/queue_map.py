"""Queues × members as columns of numbers that a browser draws. Pure.

The data of ten thousand queues is sent once; afterwards only what has changed. Members have seats:
numbers that stay theirs while they are in the group, so that a member keeps its colour when others
join and leave.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from pocketmq.admin.explaining import Explanation, QueueStory
from pocketmq.balance.story.history import GroupHistory
from pocketmq.balance.story.observation import GroupObservation
from pocketmq.balance.what_if import Ownership
from pocketmq.dashboard.handover_words import STATES, state_of
from pocketmq.model import MessageQueue, sort_queues

NO_OWNER = -1
UNKNOWN_OWNER = -2
SEVERAL = -3

_COLUMNS = ("owner", "expected", "lag", "since", "was", "stage")
_STAGES = {stage: number for number, stage in enumerate(STATES, 1)}


class Seat(msgspec.Struct, frozen=True):
    """A member on the map."""

    seat: int
    name: str
    queues: int
    lag: int | None
    """The lag of its queues; None if that of one is unknown."""
    untold: str | None = None
    """Why its queues are unknown, if so."""


class QueueMapData(msgspec.Struct, frozen=True, kw_only=True):
    """All queues, position by position, and their owners: a seat, or a constant from above."""

    topics: list[str]
    brokers: list[str]
    t: list[int]
    b: list[int]
    q: list[int]
    """Each queue's topic, broker and number."""
    members: list[Seat]
    owner: list[int]
    several: dict[str, list[int]]
    """The seats of the owners of a queue with several, by its position."""
    expected: list[int]
    """The owner by the strategy in use; -1 if there is none, or it is unknown."""
    lag: list[int | None]
    since: list[int | None]
    """When the owner was first seen, in seconds since 1970; None if it was since polling began."""
    was: list[int]
    """The last known owner of a queue whose owner is unknown now; else -1."""
    moved: list[int] = []
    """Positions to highlight as moved."""
    stage: list[int] = []
    """Each queue's state in a hand-over, by its number in `STATES` from 1 on; 0 if there is none.
    Empty where queues are not handed over."""


class Seats:
    """Assigns members numbers, the lowest free ones."""

    def __init__(self) -> None:
        self._seats: dict[str, int] = {}

    def take(self, members: Iterable[str]) -> dict[str, int]:
        """Seat these members; all others have left."""
        present = sorted(set(members))
        self._seats = {m: seat for m, seat in self._seats.items() if m in set(present)}
        taken = set(self._seats.values())
        free = (seat for seat in range(len(taken) + len(present)) if seat not in taken)
        for member in present:
            if member not in self._seats:
                self._seats[member] = next(free)
        return dict(self._seats)


def live_map(
    story: Explanation, now: GroupObservation, history: GroupHistory, seats: dict[str, int]
) -> QueueMapData:
    """Return the map of a group as it is; empty where queues have no owners."""
    owner, was, since = [], [], []
    several = {}
    stories = story.queues if now.shared else ()
    for position, each in enumerate(stories):
        owners = now.owners.get(each.queue, ())
        last = NO_OWNER
        if owners is None:
            known = history.owners(each.queue)
            last = seats.get(known[0], NO_OWNER) if known else NO_OWNER
            owner.append(UNKNOWN_OWNER)
        elif not owners:
            owner.append(NO_OWNER)
        elif len(owners) == 1:
            owner.append(seats[owners[0]])
        else:
            owner.append(SEVERAL)
            several[str(position)] = [seats[member] for member in owners]
        was.append(last)
        first_seen = history.since(each.queue)
        since.append(None if first_seen is None else int(first_seen))
    topics, brokers, places = _places([each.queue for each in stories])
    return QueueMapData(
        topics=topics,
        brokers=brokers,
        t=places[0],
        b=places[1],
        q=places[2],
        members=_members(story, now, seats),
        owner=owner,
        several=several,
        expected=[seats.get(each.expected or "", NO_OWNER) for each in stories],
        lag=[each.lag for each in stories],
        since=since,
        was=was,
        stage=_stages(stories) if story.sticky is not None else [],
    )


def _stages(stories: Iterable[QueueStory]) -> list[int]:
    numbers = []
    for each in stories:
        state = state_of(each.stages) if each.stages else None
        numbers.append(0 if state is None else _STAGES[state])
    return numbers


def preview_map(
    ownership: Ownership, seats: dict[str, int], moved: set[MessageQueue]
) -> QueueMapData:
    """Return the map of a what-if, with moved queues highlighted."""
    holder = {queue: share.member for share in ownership.shares for queue in share.queues}
    queues = sort_queues([*holder, *ownership.unowned])
    topics, brokers, places = _places(queues)
    owner = [seats[holder[queue]] if queue in holder else NO_OWNER for queue in queues]
    nothing: list[int] = [NO_OWNER] * len(queues)
    unknown: list[int | None] = [None] * len(queues)
    return QueueMapData(
        topics=topics,
        brokers=brokers,
        t=places[0],
        b=places[1],
        q=places[2],
        members=[Seat(seats[each.member], each.member, each.total, None) for each in
                 ownership.shares],
        owner=owner,
        several={},
        expected=owner,
        lag=unknown,
        since=unknown,
        was=nothing,
        moved=[position for position, queue in enumerate(queues) if queue in moved],
    )  # fmt: skip


def patch(before: QueueMapData | None, now: QueueMapData) -> dict[str, Any]:
    """Return what a browser that shows `before` needs to show `now`; everything, if it has none."""
    if (
        before is None
        or any(
            getattr(before, name) != getattr(now, name)
            for name in ("topics", "brokers", "t", "b", "q")
        )
        or len(before.stage) != len(now.stage)
    ):
        whole: dict[str, Any] = msgspec.to_builtins(now)
        return {"whole": whole}
    changes: dict[str, Any] = {}
    for name in _COLUMNS:
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            changes[name] = [
                part
                for position, (was, is_) in enumerate(zip(old, new, strict=True))
                if was != is_
                for part in (position, is_)
            ]
    for name in ("members", "several", "moved"):
        if getattr(before, name) != getattr(now, name):
            changes[name] = msgspec.to_builtins(getattr(now, name))
    return changes


def _members(story: Explanation, now: GroupObservation, seats: dict[str, int]) -> list[Seat]:
    counts: Counter[str] = Counter()
    lags: dict[str, int | None] = {}
    for each in story.queues:
        for member in now.owners.get(each.queue) or ():
            counts[member] += 1
            so_far = lags.get(member, 0)
            lags[member] = None if so_far is None or each.lag is None else so_far + each.lag
    return [
        Seat(
            seats[member],
            member,
            counts[member],
            None if member in now.untold else lags.get(member, 0),
            now.untold.get(member),
        )
        for member in sorted(now.members)
    ]


def _places(
    queues: list[MessageQueue],
) -> tuple[list[str], list[str], tuple[list[int], list[int], list[int]]]:
    topics = sorted({queue.topic for queue in queues})
    brokers = sorted({queue.broker_name for queue in queues})
    topic_number = {topic: number for number, topic in enumerate(topics)}
    broker_number = {broker: number for number, broker in enumerate(brokers)}
    return (
        topics,
        brokers,
        (
            [topic_number[queue.topic] for queue in queues],
            [broker_number[queue.broker_name] for queue in queues],
            [queue.queue_id for queue in queues],
        ),
    )
