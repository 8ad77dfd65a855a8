"""In which order a pop reads the queues of a topic: from a random one on, or by priority (5.4).

A queue's number is the priority of its messages; see `broker.sending.priority`. Pure rules.
"""

from collections.abc import Sequence

from pocketmq.model import GroupConfig, TopicConfig
from pocketmq.model.topic_kinds import TopicKind
from pocketmq.protocol.header import read_int64

_FACTOR = "priority.factor"
"""A group's attribute: the percentage of its pops that go by priority (Java: PRIORITY_FACTOR)."""
_ALWAYS = 100


def priority_factor(topic: TopicConfig | None, group: GroupConfig | None) -> int:
    """Return the percentage of pops that go by priority; 0 if the topic's type is another."""
    if topic is None or not topic.attributes:  # as most are
        return 0
    if TopicKind.read(topic.attributes) is not TopicKind.PRIORITY:
        return 0
    text = None if group is None else group.attributes.get(_FACTOR)
    factor = None if text is None else read_int64(text)
    return _ALWAYS if factor is None else factor


def queue_order(count: int, chance: int | None, *, ascending: bool) -> Sequence[int]:
    """Return the order of `count` queues: from the one at `chance` on, or by priority for None.

    With `ascending` a larger number is more urgent (Java: priorityOrderAsc).
    """
    if chance is not None:
        first = chance % count if count else 0
        return [*range(first, count), *range(first)]
    return range(count - 1, -1, -1) if ascending else range(count)
