"""How few queues had to move: the fewest moves to an assignment as even as the one reached.

The same meaning wherever a minimum is shown, from `allocate` to `RebalanceEvent.minimum`. What
"as even" includes depends on the strategy:

- Java's strategies divide each topic alone. Their minimum is that of each topic, summed up: the
  same numbers of queues, whichever member has which number (`fewest_moves`).
- STICKY is even over all topics, too, and so is its minimum: the fewest moves to numbers that
  differ by one at most in every topic and over all of them (`fewest_over_all`, `fewest_known`).

Where a queue that got its first owner or lost its last counts as moved, the minimum counts it, too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pocketmq.balance.allocation import GroupStrategy
from pocketmq.balance.sticky import minimum_moves
from pocketmq.balance.what_if.situation import Owners, Situation
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
