"""Groups to assign queues in, and the laws' yardsticks, written as plainly as can be."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from hypothesis import strategies as st

from pocketmq.balance.sticky.scores import member_key, queue_key, scores, topic_key
from pocketmq.model import MessageQueue

Owners = Mapping[MessageQueue, str | None]
RETRY = "%RETRY%g"


class Group(NamedTuple):
    topics: dict[str, list[MessageQueue]]
    members: list[str]
    previous: dict[MessageQueue, str | None]

    @property
    def queues(self) -> list[MessageQueue]:
        return [queue for queues in self.topics.values() for queue in queues]


def topic(name: str, count: int, brokers: int = 2) -> list[MessageQueue]:
    return [MessageQueue(name, f"broker-{n % brokers}", n // brokers) for n in range(count)]


@st.composite
def groups(
    draw: st.DrawFn, *, topics: int = 6, queues: int = 12, members: int = 7, total: int = 60
) -> Group:
    """Draw a group; its owners before are members, gone ones or none, as uneven as can be."""
    names = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=members, unique=True))
    made: dict[str, list[MessageQueue]] = {}
    for number in range(draw(st.integers(1, topics))):
        left = total - sum(map(len, made.values()))
        made[f"t{number}"] = topic(f"t{number}", draw(st.integers(0, min(queues, left))))
    favourite = draw(st.sampled_from(names))
    owner = st.sampled_from([*names, favourite, favourite, "gone", None])
    previous = {queue: draw(owner) for queues_ in made.values() for queue in queues_}
    return Group(made, names, previous)


SMALL = groups(topics=3, queues=4, members=3, total=7)


def spread(owners: Owners, members: Collection[str]) -> int:
    counts = Counter(owners.values())
    numbers = [counts[member] for member in members]
    return max(numbers) - min(numbers)


def spreads(owners: Owners, members: Collection[str]) -> list[int]:
    """Return the spread of the pool and of each of its topics."""
    topics = {queue.topic for queue in owners}
    parts = [{q: o for q, o in owners.items() if q.topic == name} for name in topics]
    return [spread(part, members) for part in (owners, *parts)]


def moves(previous: Owners, owners: Owners) -> int:
    """Count the queues that had an owner and have another one now."""
    return sum(previous.get(q) not in (None, owner) for q, owner in owners.items())


def extras_score(group: Group, owners: Owners) -> int:
    """Add up the scores of all members that have one more of a topic than the equal share."""
    total = 0
    for name, queues in group.topics.items():
        counts = Counter(owners[queue] for queue in queues)
        for member in group.members:
            if counts[member] > len(queues) // len(group.members):
                total += scores(topic_key(name), [member_key(member)])[0]
    return total


def every_balanced_assignment(group: Group) -> Iterator[dict[MessageQueue, str]]:
    """Try all assignments there are and yield the balanced ones."""
    queues = group.queues
    for choice in product(group.members, repeat=len(queues)):
        owners = dict(zip(queues, choice, strict=True))
        if max(spreads(owners, group.members)) <= 1:
            yield owners


def queues_by_score(
    group: Group, numbers: Mapping[tuple[str, str], int]
) -> dict[MessageQueue, str]:
    """Deal out queues to given numbers by sorting all pairs, in every topic for itself."""
    owners: dict[MessageQueue, str] = {}
    for name, queues in group.topics.items():
        pairs = sorted(
            (
                (_score(queue, member), queue, member)
                for queue in queues
                for member in group.members
            ),
            key=lambda pair: pair[0],
            reverse=True,
        )
        lacking = {member: numbers[name, member] for member in group.members}
        for only_kept in (True, False):
            for _, queue, member in pairs:
                at_home = group.previous.get(queue) == member
                if queue not in owners and lacking[member] and at_home >= only_kept:
                    owners[queue] = member
                    lacking[member] -= 1
    return owners


def _score(queue: MessageQueue, member: str) -> int:
    return scores(queue_key(queue), [member_key(member)])[0]
