"""Queues that changed hands, gathered into rebalances of the whole group.

Members rebalance each for themselves; what they do until every queue has one owner again, or
within a short time of one another, is one rebalance of the group. How many queues moved is compared
with how few would have had to.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from pocketmq.balance.story.timeline import DIED, Owned, Timeline, finished
from pocketmq.balance.what_if import fewest_moves
from pocketmq.model.queue import QueueName
from pocketmq.model.rebalance_event import RebalanceEvent

QUIET = 2.0
"""Seconds without any change that end a rebalance of the group."""
SETTLED_QUIET = 0.3
"""Seconds that are enough where every queue has one owner."""


class Handover(msgspec.Struct, frozen=True):
    """A queue that went from one member to another.

    `pause` is the time nobody had it, `overlap` the time both had; `duplicates` counts messages
    that both were given, None where nobody recorded what handlers were given.
    """

    queue: QueueName
    left: str
    took: str
    at: float
    pause: float
    overlap: float
    died: bool
    duplicates: int | None = None


class Balance(msgspec.Struct, frozen=True):
    """How many queues most and fewest members have: of each topic, and of all together."""

    topics: dict[str, int]
    group: int
    unowned: int


class Rebalance(msgspec.Struct, frozen=True):
    """What the whole group did in one go."""

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
    first_taken: int
    after: Balance

    @property
    def cause(self) -> str:
        """Say why, as far as the events tell."""
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


def handovers(story: Timeline) -> list[Handover]:
    """List every change of hands, in order of time."""
    found = []
    for queue, spans in story.owned.items():
        for earlier, later in pairwise(spans):
            if earlier.member == later.member:
                continue
            gap = later.since - earlier.until
            away = sum(
                max(0.0, min(until, later.since) - max(since, earlier.until))
                for since, until in story.absent.get(queue, ())
            )
            found.append(
                Handover(
                    queue, earlier.member, later.member, later.since,
                    pause=max(0.0, gap - away),
                    overlap=max(0.0, min(earlier.until, later.until) - later.since),
                    died=earlier.ended == DIED,
                )
            )  # fmt: skip
    return sorted(found, key=lambda move: (move.at, move.queue))


def owners_at(story: Timeline, moment: float) -> dict[QueueName, str | None]:
    """Tell who owns each queue that exists at a time; the later of two at once."""
    holders = _holders_at(story, moment)
    return {queue: held[-1].member if held else None for queue, held in holders.items()}


def _holders_at(story: Timeline, moment: float) -> dict[QueueName, list[Owned]]:
    result = {}
    for queue, (since, until) in story.known.items():
        away = any(a <= moment < b for a, b in story.absent.get(queue, ()))
        if since <= moment <= until and not away:
            result[queue] = [o for o in story.owned[queue] if o.since <= moment < _end(o, story)]
    return result


def _settled(story: Timeline, moment: float) -> bool:
    """Tell whether every queue has exactly one owner."""
    return all(len(held) == 1 for held in _holders_at(story, moment).values())


def _end(owned: Owned, story: Timeline) -> float:
    """Give when it ended; what is held at the end is held beyond it."""
    return owned.until if owned.ended != "held" else max(owned.until, story.ended) + 1.0


def rebalances(
    story: Timeline, events: Sequence[RebalanceEvent], quiet: float = QUIET
) -> list[Rebalance]:
    """Gather the changes into rebalances of the group, and measure each."""
    times = sorted({t for spans in story.owned.values() for o in spans for t in _changes(o)})
    clusters: list[list[float]] = []
    for time in times:
        gap = time - clusters[-1][-1] if clusters else quiet + 1.0
        if gap <= SETTLED_QUIET or (gap <= quiet and not _settled(story, time - gap / 2)):
            clusters[-1].append(time)
        else:
            clusters.append([time])
    result = []
    before: dict[QueueName, str | None] = {}
    for number, cluster in enumerate(clusters):
        until = clusters[number + 1][0] if number + 1 < len(clusters) else story.ended
        after = owners_at(story, min(cluster[-1] + 1e-6, max(until, cluster[-1])))
        told = [
            e
            for e in events
            if e.changed and cluster[0] - 1e-6 <= finished(e) <= cluster[-1] + 1e-6
        ]
        dead = {
            o.member
            for spans in story.owned.values()
            for o in spans
            if o.ended == DIED and o.noticed is not None and cluster[0] <= o.noticed <= cluster[-1]
        }
        result.append(_measured(cluster, (before, after), told, dead))
        before = after
    return result


def _changes(owned: Owned) -> list[float]:
    if owned.ended == "held":
        return [owned.since]
    return [owned.since, owned.noticed if owned.noticed is not None else owned.until]


def _measured(
    cluster: list[float],
    owners: tuple[dict[QueueName, str | None], dict[QueueName, str | None]],
    told: list[RebalanceEvent],
    dead: set[str],
) -> Rebalance:
    before, after = owners
    moved = minimum = 0
    members = sorted({owner for owner in after.values() if owner is not None})
    # A group that ends moves nothing: there is nobody to move it to.
    for topic in sorted({queue.topic for queue in after}) if members else ():
        new = [owner for queue, owner in after.items() if queue.topic == topic]
        kept = [queue for queue in after if queue.topic == topic and before.get(queue) is not None]
        moved += sum(before[queue] != after[queue] for queue in kept)
        had = [before[queue] for queue in kept]
        minimum += fewest_moves(had, new, members)
    had_brokers, has_brokers = {q.broker for q in before}, {q.broker for q in after}
    old_members = {owner for owner in before.values() if owner is not None}
    triggers = Counter(part for event in told for part in event.trigger.split(", "))
    return Rebalance(
        since=cluster[0],
        until=cluster[-1],
        triggers=[name for name, _ in triggers.most_common()],
        joined=sorted(set(members) - old_members),
        left=sorted(old_members - set(members) - dead),
        died=sorted((old_members - set(members)) & dead),
        brokers_lost=sorted(had_brokers - has_brokers),
        brokers_back=sorted(has_brokers - had_brokers) if before else [],
        moved=moved,
        minimum=minimum,
        first_taken=sum(1 for q, o in after.items() if o is not None and before.get(q) is None),
        after=balance(after),
    )


def balance(owners: dict[QueueName, str | None]) -> Balance:
    """Measure how evenly queues are shared among those that have any."""
    members = {owner for owner in owners.values() if owner is not None}
    topics: dict[str, int] = {}
    for topic in sorted({queue.topic for queue in owners}):
        counts = Counter(owner for queue, owner in owners.items() if queue.topic == topic)
        topics[topic] = _spread(counts, members)
    return Balance(
        topics, _spread(Counter(owners.values()), members), sum(o is None for o in owners.values())
    )


def _spread(counts: Counter[str | None], members: set[str]) -> int:
    held = [counts[member] for member in members]
    return max(held, default=0) - min(held, default=0)


def returned(moves: Sequence[Handover], within: float) -> list[Handover]:
    """Give the moves by which a queue came back to a member that had lost it shortly before."""
    lost: dict[tuple[QueueName, str], float] = {}
    found = []
    for move in moves:
        when = lost.get((move.queue, move.took))
        if when is not None and move.at - when <= within:
            found.append(move)
        lost[move.queue, move.left] = move.at
    return found
