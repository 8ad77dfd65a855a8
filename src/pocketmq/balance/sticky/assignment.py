"""The sticky assignment: the fewest moves to numbers that differ by one at most.

Owns the rule, in three steps:

1. Pools. Topics are balanced together, so that a member's extras of one topic make up for those of
   another one. Retry topics are a pool of their own: they are mostly idle.
2. Numbers. Of a topic with n queues each of m members gets n // m, some get one more; `shares`
   chooses them. A member can keep as many queues as it owns and may have, so the choice alone
   decides the number of moves, and it is linear in it: an extra saves a move exactly where the
   member owns more than n // m.
3. Queues. A member with too many keeps those with the highest scores. Queues without an owner go to
   members with too few, the pair with the highest score first.

Why it is confluent, that is, why every state on the way to the result has the same result. On the
way each queue that moves is at its old owner, at none or at its new one; all others stay.

- Numbers: let T be the result, A any other choice. A queue's arrival saves T one move, and A one at
  most. A queue's release takes one kept queue from all that wanted it kept, and T is not among
  them. So T, which was best, remains best; and if A was as good except for its scores, it still
  loses, because scores do not depend on the state.
- Queues: a member with too many has its best ones and some of those it must release, so the same
  ones are its best. Dealing out, highest pair first, is not changed by taking out a pair that it
  would make: the member has capacity for one less and one less comes to it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace

import msgspec

from pocketmq.balance.sticky.scores import queue_key, scores
from pocketmq.balance.sticky.shares import TopicCount, extras_of, keys_of
from pocketmq.model import MessageQueue

Topics = Mapping[str, Collection[MessageQueue]]
"""The queues of each topic."""


def assign(
    topics: Topics,
    members: Collection[str],
    previous: Mapping[MessageQueue, str | None],
    absent: Collection[MessageQueue] = (),
) -> dict[MessageQueue, str]:
    """Return the owner of every queue.

    `previous` holds the owners up to now, as far as known; owners that are not members and queues
    that no longer exist are ignored. `absent` are queues of a broker that is away and may soon be
    back: they count as if they were there, so that nothing moves when they are, but they are not in
    the result. Equal queues and equal members count once. Without members no queue has an owner.
    """
    there = set[MessageQueue]().union(*topics.values())
    away = set(absent) - there
    keys = keys_of(members)
    owners: dict[MessageQueue, str] = {}
    for topic in _planned(there | away, keys, previous):
        _keep_and_deal(topic, keys, owners)
    for queue in away:
        owners.pop(queue, None)
    return owners


def minimum_moves(
    topics: Topics,
    members: Collection[str],
    previous: Mapping[MessageQueue, str | None],
    absent: Collection[MessageQueue] = (),
) -> int:
    """Return the number of queues that must get another owner, as few as balance allows.

    Counts what `assign` moves, also of absent queues; a queue's first owner is not a move.
    """
    queues = set(absent).union(*topics.values())
    moves = 0
    for topic in _planned(queues, keys_of(members), previous):
        moves += sum(previous.get(queue) is not None for queue in topic.free)
        for member, owned in topic.owned.items():
            moves += max(0, len(owned) - topic.number(member))
    return moves


class _TopicTargets(msgspec.Struct, frozen=True):
    """A topic, who owns its queues, and who shall have how many of them."""

    name: str
    owned: dict[str, list[MessageQueue]]
    free: list[MessageQueue]
    floor: int
    extras: frozenset[str]

    def number(self, member: str) -> int:
        """Return how many queues a member shall have."""
        return self.floor + (member in self.extras)


def _planned(
    queues: Iterable[MessageQueue],
    keys: Mapping[str, int],
    previous: Mapping[MessageQueue, str | None],
) -> Iterator[_TopicTargets]:
    """Yield all topics with the members' numbers."""
    if not keys:
        return
    owned: dict[str, dict[str, list[MessageQueue]]] = {}
    free: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        owner = previous.get(queue)
        if owner is not None and owner in keys:
            owned.setdefault(queue.topic, {}).setdefault(owner, []).append(queue)
        else:
            free.setdefault(queue.topic, []).append(queue)
    counts = []
    for name in sorted(owned.keys() | free.keys()):
        numbers = {member: len(queues) for member, queues in owned.get(name, {}).items()}
        counts.append(TopicCount(name, sum(numbers.values()) + len(free.get(name, ())), numbers))
    extras = extras_of(counts, keys)
    for count in counts:
        floor, name = count.queues // len(keys), count.name
        yield _TopicTargets(name, owned.get(name, {}), free.get(name, []), floor, extras[name])


def _keep_and_deal(
    topic: _TopicTargets, keys: Mapping[str, int], owners: dict[MessageQueue, str]
) -> None:
    """Let every member of a topic keep its number of queues, and deal out the others."""
    free = topic.free.copy()
    for member, owned in topic.owned.items():
        number = topic.number(member)
        kept = owned
        if len(owned) > number:
            ranked = sorted(owned, key=lambda queue: _score(queue, keys[member]), reverse=True)
            kept, released = ranked[:number], ranked[number:]
            free += released
        for queue in kept:
            owners[queue] = member
    if not free:
        return
    lacking = {}
    for member in keys if topic.floor else topic.extras:
        lack = topic.number(member) - len(topic.owned.get(member, ()))
        if lack > 0:
            lacking[member] = lack
    _deal(free, lacking, keys, owners)


def _score(queue: MessageQueue, key: int) -> int:
    return scores(queue_key(queue), [key])[0]


def _deal(
    free: Sequence[MessageQueue],
    lacking: dict[str, int],
    keys: Mapping[str, int],
    owners: dict[MessageQueue, str],
) -> None:
    """Assign free queues to the members that lack some, the pair with the highest score first.

    Each queue waits with its best member only. When that one has become complete, the queue waits
    again with the best of the others: far fewer pairs are looked at than there are.
    """
    if len(lacking) == 1:
        [member] = lacking
        owners.update(dict.fromkeys(free, member))
        return
    names = list(lacking)
    their_keys = [keys[member] for member in names]

    def best(key: int, position: int) -> tuple[int, int, int, str]:
        values = scores(key, their_keys)
        highest = max(values)
        return -highest, key, position, names[values.index(highest)]

    waiting = [best(queue_key(queue), position) for position, queue in enumerate(free)]
    heapify(waiting)
    while waiting:
        _, key, position, member = waiting[0]
        if member not in lacking:
            if len(names) > len(lacking):
                names = list(lacking)
                their_keys = [keys[each] for each in names]
            heapreplace(waiting, best(key, position))
            continue
        heappop(waiting)
        owners[free[position]] = member
        lacking[member] -= 1
        if not lacking[member]:
            del lacking[member]
