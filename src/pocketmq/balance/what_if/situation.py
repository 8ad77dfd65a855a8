"""A group's situation: what its strategy is asked with, who then owns what, and how evenly.

Describes one situation; how it differs from the next is in `movement`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from pocketmq.balance.allocation import GroupStrategy, Strategy, is_group_strategy
from pocketmq.errors import AllocationInputInvalid
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.java_strings import java_sorted

Owners = dict[str, list[str | None]]
"""For each topic the owner of each of its queues, position by position."""

_NO_OWNERS: dict[MessageQueue, str] = {}


class Situation(msgspec.Struct, frozen=True):
    """A group whose members all subscribe to the same topics; make one with `Situation.of`.

    `previous` holds the owners up to now, as far as known. Only a `GroupStrategy` uses it, and so
    it does `foreign`: the ids of members, present or to come, that use a Java strategy.
    """

    topics: dict[str, tuple[MessageQueue, ...]]
    members: tuple[str, ...]
    strategy: Strategy
    group: str = ""
    previous: dict[MessageQueue, str] = {}
    foreign: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        topics: Mapping[str, Collection[MessageQueue]],
        members: Collection[str],
        strategy: Strategy,
        group: str = "",
        *,
        previous: Mapping[MessageQueue, str] = _NO_OWNERS,
        foreign: Collection[str] = (),
    ) -> "Situation":
        """Bring queues and members into Java's order; a repeated member id stays repeated.

        Raises `AllocationInputInvalid` for an empty member id or a queue of another topic.
        """
        if "" in members:
            raise AllocationInputInvalid("a member id must not be empty")
        for topic, queues in topics.items():
            if any(queue.topic != topic for queue in queues):
                raise AllocationInputInvalid(
                    f"the queues of topic {topic} include one of another topic"
                )
        return cls(
            topics={topic: in_order(topics[topic]) for topic in java_sorted(tuple(topics))},
            members=tuple(java_sorted(tuple(members))),
            strategy=strategy,
            group=group,
            previous=dict(previous),
            foreign=frozenset(foreign),
        )

    def brokers(self) -> set[str]:
        """Return the brokers that have any queue."""
        return {queue.broker_name for queues in self.topics.values() for queue in queues}

    def sides(self) -> tuple[list[str], list[str]]:
        """Return the members without the foreign ones, and the foreign ones."""
        ours = [member for member in self.members if member not in self.foreign]
        return ours, [member for member in self.members if member in self.foreign]

    def after(self, earlier: "Situation", owned: Owners) -> "Situation":
        """Return the situation with the owners of an earlier one, if its strategy uses them."""
        if not is_group_strategy(self.strategy):
            return self
        previous = {
            queue: owner
            for topic, queues in earlier.topics.items()
            for queue, owner in zip(queues, owned[topic], strict=True)
            if owner is not None
        }
        return msgspec.structs.replace(self, previous=previous)


def in_order(queues: Collection[MessageQueue]) -> tuple[MessageQueue, ...]:
    """Return queues in Java's order, equal ones once."""
    return tuple(sort_queues(set(queues)))


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
