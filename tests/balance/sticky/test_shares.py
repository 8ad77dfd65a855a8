"""Numbers of queues are those that the assignment deals out."""

from collections import Counter

from hypothesis import given, settings

from pocketmq.balance.sticky import TopicCount, assign, shares
from tests.balance.sticky import shapes


@settings(max_examples=150, deadline=None)
@given(shapes.groups())
def test_members_have_as_many_queues_as_they_are_assigned(group: shapes.Group) -> None:
    owners = assign(group.topics, group.members, group.previous)
    assigned = {topic: Counter(dict.fromkeys(group.members, 0)) for topic in group.topics}
    counts = []
    for topic, queues in group.topics.items():
        assigned[topic].update([owners[queue] for queue in queues])
        before = Counter([group.previous.get(queue) for queue in set(queues)])
        owned = {member: number for member, number in before.items() if member in group.members}
        counts.append(TopicCount(topic, len(set(queues)), {m: n for m, n in owned.items() if m}))
    assert shares(counts, group.members) == assigned


def test_without_members_there_are_no_numbers() -> None:
    assert shares([TopicCount("orders", 4, {})], []) == {"orders": {}}
