"""Which queues change hands between two situations, and how few would have had to.

Every moved queue costs a pause and perhaps messages seen twice, so both numbers are what an
operator weighs strategies by. As lists (`movement`), as numbers alone for thousands of groups
(`numbers`), and from what is known of a running group (`moves_between`).

A minimum is the fewest moves to an assignment as even as the one reached, wherever it is shown,
from `allocate` to `RebalanceEvent.minimum`. What "as even" includes depends on the strategy:

- Java's strategies divide each topic alone. Their minimum is that of each topic, summed up: the
  same numbers of queues, whichever member has which number (`fewest_moves`).
- STICKY is even over all topics, too, and so is its minimum: the fewest moves to numbers that
  differ by one at most in every topic and over all of them (`fewest_over_all`, `fewest_known`).

Where a queue that got its first owner or lost its last counts as moved, the minimum counts it,
too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import ne
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from pocketmq.balance.allocation import GroupStrategy, is_group_strategy
from pocketmq.balance.sticky import minimum_moves
from pocketmq.balance.what_if.situation import Owners, Situation, owners_from, spread
from pocketmq.model import MessageQueue


def fewest_moves(
    kept_owners: Sequence[str | None], new_owners: Sequence[str | None], members: Iterable[str]
) -> int:
    """Return how few of the kept queues must move to reach a spread like that of `new_owners`.

    A member can keep no more than it had and no more than it shall have. Giving the largest new
    numbers to those that had most keeps the most in all; queues of members gone must all move.
    """
    return fewest_moves_of(Counter(kept_owners), Counter(new_owners), members)


def fewest_moves_of(
    had: Counter[str | None], has: Counter[str | None], members: Iterable[str]
) -> int:
    """Return the same from the number of kept queues each had, and of all queues each has."""
    staying = set(members)
    before = sorted([had.get(member, 0) for member in staying])
    after = sorted([has.get(member, 0) for member in staying])
    may_stay = sum(map(min, before, after)) + min(had[None], has[None])
    return had.total() - may_stay


def fewest_over_all(
    strategy: GroupStrategy,
    before: Situation,
    owned_before: Owners,
    after: Situation,
    owned_after: Owners,
) -> int:
    """Return the fewest moves over all topics; the first owner of an old queue is one, too."""
    had = _by_queue(before, owned_before)
    has = _by_queue(after, owned_after)
    ours, foreign = after.sides()
    moves = strategy.minimum_moves(after.topics, ours, had, foreign, group=after.group)
    return moves + sum((had[q] is None) != (has[q] is None) for q in had.keys() & has.keys())


def _by_queue(situation: Situation, owned: Owners) -> dict[MessageQueue, str | None]:
    owners: dict[MessageQueue, str | None] = {}
    for topic, queues in situation.topics.items():
        owners |= zip(queues, owned[topic], strict=True)
    return owners


def fewest_known(
    pairs: Mapping[str, tuple[list[str | None], list[str | None]]], members: set[str]
) -> int:
    """Return the fewest moves over all topics; their number does not depend on queues' names."""
    topics: dict[str, list[MessageQueue]] = {}
    previous: dict[MessageQueue, str | None] = {}
    for topic, (old, new) in pairs.items():
        topics[topic] = [MessageQueue(topic, "", number) for number in range(len(new))]
        previous |= zip(topics[topic], old, strict=False)
    return minimum_moves(topics, members, previous)


class Move(msgspec.Struct, frozen=True, gc=False):
    """A queue that changed hands; None stands for no owner."""

    queue: MessageQueue
    previous: str | None = msgspec.field(name="from")
    owner: str | None = msgspec.field(name="to")


class Movement(msgspec.Struct, frozen=True):
    """All that changed between two situations.

    `moves` holds the queues that exist in both and have another owner now (`moved` of them).
    `minimum` is how few had to move; this module says what that is. `added` and `removed` hold
    queues that exist in one situation only.
    """

    moved: int
    minimum: int
    moves: list[Move]
    added: list[Move]
    removed: list[Move]


def movement(
    before: Situation, owned_before: Owners, after: Situation, owned_after: Owners
) -> Movement:
    """Compare two situations of one group with the same topics."""
    moves: list[Move] = []
    added: list[Move] = []
    removed: list[Move] = []
    minimum = 0
    for topic, old_queues in before.topics.items():
        old_owners, new_owners = owned_before[topic], owned_after[topic]
        new_queues = after.topics[topic]
        kept, had, has = kept_queues(old_queues, old_owners, new_queues, new_owners)
        owners = zip(kept, had, has, strict=True)
        moves += [Move(queue, old, new) for queue, old, new in owners if old != new]
        if old_queues is not new_queues:
            staying = set(kept)
            came = zip(new_queues, new_owners, strict=True)
            added += [Move(queue, None, owner) for queue, owner in came if queue not in staying]
            went = zip(old_queues, old_owners, strict=True)
            removed += [Move(queue, owner, None) for queue, owner in went if queue not in staying]
        minimum += fewest_moves(had, new_owners, after.members)
    if is_group_strategy(after.strategy):
        minimum = fewest_over_all(after.strategy, before, owned_before, after, owned_after)
    return Movement(len(moves), minimum, moves, added, removed)


def first_movement(situation: Situation, owned: Owners) -> Movement:
    """Compare the owners that a situation brought along with those that it has."""
    return movement(situation, owners_from(situation.topics, situation.previous), situation, owned)


def kept_queues(
    old_queues: Sequence[MessageQueue],
    old_owners: Sequence[str | None],
    new_queues: Sequence[MessageQueue],
    new_owners: Sequence[str | None],
) -> tuple[Sequence[MessageQueue], Sequence[str | None], Sequence[str | None]]:
    """Return the queues that exist in both situations, with their owners before and after."""
    if old_queues is new_queues:  # only members or the strategy changed
        return old_queues, old_owners, new_owners
    old = dict(zip(old_queues, old_owners, strict=True))
    new = dict(zip(new_queues, new_owners, strict=True))
    kept = [queue for queue in old_queues if queue in new]
    return kept, [old[queue] for queue in kept], [new[queue] for queue in kept]


class Numbers(NamedTuple):
    """A group in one situation; the movement is that since the situation before.

    `spread` is that of the members' totals, `topic_spread` the largest of any topic.
    """

    queues: int
    unowned: int
    spread: int
    topic_spread: int
    moved: int = 0
    minimum: int = 0
    added: int = 0
    removed: int = 0


def numbers(
    now: Situation, owned: Owners, before: tuple[Situation, Owners] | None = None
) -> Numbers:
    """Count the queues of a situation, how evenly they are owned and what moved since `before`."""
    counts = {topic: Counter(owners) for topic, owners in owned.items()}
    spreads = [spread(count, now.members) for count in counts.values()]
    if len(counts) == 1:
        [totals], [overall] = counts.values(), spreads
    else:
        totals = sum(counts.values(), Counter[str | None]())
        overall = spread(totals, now.members)
    balance = (totals.total(), totals[None], overall, max(spreads, default=0))
    if before is None:
        return Numbers(*balance)
    return Numbers(*balance, *_moved(*before, now, owned, counts))


def _moved(
    earlier: Situation,
    owned_earlier: Owners,
    now: Situation,
    owned: Owners,
    counts: dict[str, Counter[str | None]],
) -> tuple[int, int, int, int]:
    moved = minimum = added = removed = 0
    for topic, old_queues in earlier.topics.items():
        new_queues, new_owners = now.topics[topic], owned[topic]
        kept, had, has = kept_queues(old_queues, owned_earlier[topic], new_queues, new_owners)
        moved += sum(map(ne, had, has))
        minimum += fewest_moves_of(Counter(had), counts[topic], now.members)
        added += len(new_queues) - len(kept)
        removed += len(old_queues) - len(kept)
    if is_group_strategy(now.strategy):
        minimum = fewest_over_all(now.strategy, earlier, owned_earlier, now, owned)
    return moved, minimum, added, removed


class HasTopic(Protocol):
    """A queue's name, in whichever form the evidence has it."""

    @property
    def topic(self) -> str:
        """The queue's topic."""
        ...


Q = TypeVar("Q", bound=HasTopic)
LastOwners = Mapping[Q, tuple[str, ...]]
"""The last known owners of queues; `()` is none, a missing queue is unknown."""


def moves_between(
    before: LastOwners[Q], after: LastOwners[Q], members: Iterable[str], *, over_all: bool = False
) -> tuple[list[tuple[Q, str | None, str | None]], int]:
    """Return the queues that changed hands, with old and new owner, and how few had to.

    Only queues known both times can have moved. The owner of a queue of `after` that members who
    left owned last is unknown: such queues do not count at all. `over_all` is for groups that use
    STICKY: how few had to for numbers that are even over all topics, too; halfway these are more
    than have moved.
    """
    pairs: dict[str, tuple[list[str | None], list[str | None]]] = {}
    moves = []
    staying = set(members)
    for queue, owners in after.items():
        here = tuple([member for member in owners if member in staying])
        if owners and not here:
            continue
        old, new = pairs.setdefault(queue.topic, ([], []))
        earlier = before.get(queue)
        previous, owner = _hands(earlier, here)
        new.append(owner)
        if earlier is None:  # it did not exist, or was unknown
            continue
        old.append(previous)
        if previous != owner:
            moves.append((queue, previous, owner))
    if over_all:
        changed = sum((previous is None) != (owner is None) for _, previous, owner in moves)
        return moves, changed + fewest_known(pairs, staying)
    return moves, sum(fewest_moves(old, new, staying) for old, new in pairs.values())


def _hands(before: tuple[str, ...] | None, now: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Return the old and the new owner of a queue; an owner of both times has kept it."""
    if before is None:
        return None, now[0] if now else None
    for member in now:
        if member in before:
            return member, member
    return before[0] if before else None, now[0] if now else None
