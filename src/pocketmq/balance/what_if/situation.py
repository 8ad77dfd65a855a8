"""A group's situation: what its strategy is asked with."""

from collections.abc import Collection, Mapping

import msgspec

from pocketmq.balance.allocation import Strategy, is_group_strategy
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
