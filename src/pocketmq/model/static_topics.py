"""Static topics (5.x): the names of logical queues, and which broker leads each of them.

Clients see a static topic's queues on one broker that does not exist; each queue is led by a real
broker, which may change. The rules are Java's (ClientMetadata): members of one group in both
languages see the same queues. Name servers are not trusted: counts are checked before lists are
built.
"""

from collections.abc import Iterable, Mapping

from pocketmq.errors import BodyMalformed
from pocketmq.model.queue import MessageQueue
from pocketmq.model.topics import TopicMapping

LOGICAL_BROKER = "__syslo__"
"""How the names of brokers start that stand for all logical queues of a scope."""
NO_LEADER = "__syslo__none__"
"""The leader of a logical queue that no broker has registered."""
GLOBAL_SCOPE = "__global__"
MAX_STATIC_QUEUES = 16_384
"""Logical queues of one topic at most."""


def logical_broker(scope: str) -> str:
    """Return the name that stands for the broker of a scope's logical queues."""
    return LOGICAL_BROKER + (scope[2:] if scope == GLOBAL_SCOPE else scope)


def is_logical(queue: MessageQueue) -> bool:
    """Return whether a queue is a logical queue of a static topic."""
    return queue.broker_name.startswith(LOGICAL_BROKER)


def leaders(topic: str, mappings: Mapping[str, TopicMapping]) -> dict[MessageQueue, str]:
    """Return the broker that leads each logical queue, in the order of queue ids.

    The newest mapping that has a queue decides. A queue that no broker has registered has the
    leader `NO_LEADER`: shares must not change while a queue moves. Raises `BodyMalformed` if the
    mappings declare too many queues.
    """
    scopes: dict[str, list[TopicMapping]] = {}
    for _, mapping in sorted(mappings.items()):
        scopes.setdefault(mapping.scope, []).append(mapping)
    found: dict[MessageQueue, str] = {}
    for scope, group in scopes.items():
        total = max(mapping.total_queues for mapping in group)
        if total + len(found) > MAX_STATIC_QUEUES:
            raise BodyMalformed(
                "topic route",
                f"{total} logical queues of topic {topic!r} exceed the limit of "
                f"{MAX_STATIC_QUEUES}",
            )
        by_id = _by_id(group)
        broker = logical_broker(scope)
        for queue_id in range(total):
            found[MessageQueue(topic, broker, queue_id)] = by_id.get(queue_id, NO_LEADER)
    return found


def _by_id(mappings: Iterable[TopicMapping]) -> dict[int, str]:
    found: dict[int, str] = {}
    for mapping in sorted(mappings, key=lambda each: each.epoch):
        if mapping.bname is not None:
            found.update(dict.fromkeys(mapping.curr_id_map, mapping.bname))
    return found
