"""Balance and movement of one group as numbers alone, for those who ask about thousands of groups.

Owns no rule of its own: the owners come from the strategy, evenness from `ownership`, kept queues
and the fewest moves from `movement`. The numbers equal those of `what_if`, without its lists.
"""

from collections import Counter
from operator import ne
from typing import NamedTuple

from pocketmq.balance.what_if.events import Situation
from pocketmq.balance.what_if.movement import fewest_moves_of, kept_queues
from pocketmq.balance.what_if.ownership import Owners, spread


class Numbers(NamedTuple):
    """A group at one moment; the movement is that since the moment before.

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
    return moved, minimum, added, removed
