"""Who owns what in one situation, and how evenly.

Describes one situation; how it differs from the next is in `movement`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pocketmq.balance.allocation import GroupStrategy, is_group_strategy
from pocketmq.balance.what_if.situation import Owners, Situation
from pocketmq.model import MessageQueue


class Share(msgspec.Struct, frozen=True):
    """All queues of one member, of all topics."""

    member: str
    total: int
    queues: list[MessageQueue]


class TopicBalance(msgspec.Struct, frozen=True):
    """How evenly one topic's queues are spread; `spread` is `most` less `fewest`."""

    topic: str
    queues: int
    unowned: int
    most: int
    fewest: int
    spread: int


class Ownership(msgspec.Struct, frozen=True):
    """Every member's share, in Java's order of members, and the balance.

    `spread` is that of the members' totals over all topics: strategies that favour the first
    members in every topic add up here. A repeated member id has one share.
    """

    shares: list[Share]
    unowned: list[MessageQueue]
    topics: list[TopicBalance]
    spread: int

    @property
    def worst_topic(self) -> int:
        """The largest spread within a topic."""
        return max((topic.spread for topic in self.topics), default=0)

    @property
    def idle(self) -> int:
        """The number of members without any queue."""
        return sum(share.total == 0 for share in self.shares)


def owners_in(situation: Situation) -> Owners:
    """Ask the situation's strategy for every owner; one that works over all topics is asked once.

    A topic without queues and a group without members raise nothing here: no member
    could ask. Other errors of the strategy pass through.
    """
    if is_group_strategy(situation.strategy):
        return _owners_over_all(situation, situation.strategy)
    owners: Owners = {}
    for topic, queues in situation.topics.items():
        if queues and situation.members:
            dealt = situation.strategy.allocate_all(queues, situation.members, situation.group)
            owners[topic] = dealt
        else:
            owners[topic] = [None] * len(queues)
    return owners


def _owners_over_all(situation: Situation, strategy: GroupStrategy) -> Owners:
    ours, foreign = situation.sides()
    topics, previous, group = situation.topics, situation.previous, situation.group
    owner_of = strategy.assign(topics, ours, previous, foreign, group=group)
    return owners_from(topics, owner_of)


def owners_from(
    topics: Mapping[str, Sequence[MessageQueue]], owner_of: Mapping[MessageQueue, str]
) -> Owners:
    """Return owners position by position."""
    return {topic: [owner_of.get(q) for q in queues] for topic, queues in topics.items()}


def describe(situation: Situation, owners: Owners) -> Ownership:
    """Return shares and balance from the owners of a situation."""
    queues_of: dict[str | None, list[MessageQueue]] = {None: []}
    queues_of |= {member: [] for member in situation.members}
    topics = []
    for topic, queues in situation.topics.items():
        for queue, owner in zip(queues, owners[topic], strict=True):
            queues_of[owner].append(queue)
        topics.append(_balance(topic, owners[topic], situation.members))
    unowned = queues_of.pop(None)
    shares = [Share(member, len(queues), queues) for member, queues in queues_of.items() if member]
    totals = [share.total for share in shares]
    return Ownership(shares, unowned, topics, max(totals, default=0) - min(totals, default=0))


def spread(counts: Mapping[str | None, int], members: Iterable[str]) -> int:
    """Return how many queues the member with most has more than the one with fewest."""
    numbers = [counts.get(member, 0) for member in members]
    return max(numbers, default=0) - min(numbers, default=0)


def _balance(topic: str, owners: list[str | None], members: tuple[str, ...]) -> TopicBalance:
    counts = Counter(owners)
    numbers = [counts[member] for member in members]
    most, fewest = max(numbers, default=0), min(numbers, default=0)
    return TopicBalance(topic, len(owners), counts[None], most, fewest, most - fewest)
