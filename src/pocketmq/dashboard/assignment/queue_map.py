"""Queues × members as columns of numbers that a browser draws. Pure.

A picture of ten thousand queues is sent once; afterwards only what has changed. Members have seats:
numbers that stay theirs while they are in the group, so that nobody's colour changes when others
come and go.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from pocketmq.admin.explaining import Explanation
from pocketmq.balance.story.history import History
from pocketmq.balance.story.moment import Moment
from pocketmq.balance.what_if import Ownership
from pocketmq.model.queue import MessageQueue, sort_queues

NOBODY = -1
NOT_KNOWN = -2
SEVERAL = -3

_COLUMNS = ("owner", "expected", "lag", "since", "was")


class Seat(msgspec.Struct, frozen=True):
    """A member in the picture."""

    seat: int
    name: str
    queues: int
    lag: int | None
    """What waits in its queues; None if that of one is not known."""
    untold: str | None = None
    """Why its queues are not known, if so."""


class QueueMapData(msgspec.Struct, frozen=True, kw_only=True):
    """All queues, position by position, and who holds them: a seat, or what is said above."""

    topics: list[str]
    brokers: list[str]
    t: list[int]
    b: list[int]
    q: list[int]
    """Each queue's topic, broker and number."""
    members: list[Seat]
    owner: list[int]
    several: dict[str, list[int]]
    """The seats of those who hold a queue together, by its position."""
    expected: list[int]
    """Who should hold it by the strategy in use; -1 if nobody, or it is not known."""
    lag: list[int | None]
    since: list[int | None]
    """When the owner was first seen with it, in seconds since 1970; None if it always was."""
    was: list[int]
    """Who held it when that was last known, for those of which it is not; else -1."""
    moved: list[int] = []
    """Positions to be marked as moved."""


class Seats:
    """Gives members numbers, the lowest ones free."""

    def __init__(self) -> None:
        self._seats: dict[str, int] = {}

    def take(self, members: Iterable[str]) -> dict[str, int]:
        """Seat these members; those who are not among them have left."""
        present = sorted(set(members))
        self._seats = {m: seat for m, seat in self._seats.items() if m in set(present)}
        taken = set(self._seats.values())
        free = (seat for seat in range(len(taken) + len(present)) if seat not in taken)
        for member in present:
            if member not in self._seats:
                self._seats[member] = next(free)
        return dict(self._seats)


def live_picture(
    story: Explanation, now: Moment, history: History, seats: dict[str, int]
) -> QueueMapData:
    """Draw a group as it is; where queues have no owners there are none to draw."""
    owner, was, since = [], [], []
    several = {}
    stories = story.queues if now.shared else ()
    for position, each in enumerate(stories):
        owners = now.owners.get(each.queue, ())
        last = NOBODY
        if owners is None:
            known = history.owners(each.queue)
            last = seats.get(known[0], NOBODY) if known else NOBODY
            owner.append(NOT_KNOWN)
        elif not owners:
            owner.append(NOBODY)
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
        expected=[seats.get(each.expected or "", NOBODY) for each in stories],
        lag=[each.lag for each in stories],
        since=since,
        was=was,
    )


def preview_picture(
    ownership: Ownership, seats: dict[str, int], moved: set[MessageQueue]
) -> QueueMapData:
    """Draw what would be, with the queues marked that would have moved."""
    holder = {queue: share.member for share in ownership.shares for queue in share.queues}
    queues = sort_queues([*holder, *ownership.unowned])
    topics, brokers, places = _places(queues)
    owner = [seats[holder[queue]] if queue in holder else NOBODY for queue in queues]
    nothing: list[int] = [NOBODY] * len(queues)
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
    """Give what a browser that shows one picture needs to show the next; all, if it has none."""
    if before is None or any(
        getattr(before, name) != getattr(now, name) for name in ("topics", "brokers", "t", "b", "q")
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


def _members(story: Explanation, now: Moment, seats: dict[str, int]) -> list[Seat]:
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
