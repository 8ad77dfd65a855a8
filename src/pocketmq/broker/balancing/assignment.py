"""Balancing by the broker (5.x): a member's share of a topic, and the mode it gets messages by.

Clients that do not balance themselves ask for their queues. The rules are those of `balance`, so
both kinds of members come to the same shares. `RequestModeTable` keeps operators' choices.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from pocketmq.balance.allocation import Average, AverageByCircle, Strategy
from pocketmq.errors import AllocationInputInvalid
from pocketmq.model import MessageQueue, MessageRequestMode, sort_queues
from pocketmq.model.java_strings import java_sorted
from pocketmq.model.names import is_retry_topic
from pocketmq.protocol import decode_body, encode_body
from pocketmq.protocol.requests.assignment import RequestMode

ANY_QUEUE = -1
"""The queue id of a member that pops from all queues of a broker."""

_STRATEGIES: Mapping[str, Strategy] = {
    strategy.name: strategy for strategy in (Average(), AverageByCircle())
}
"""The rules a broker offers, as Java's does; the others need knowledge only clients have, STICKY
that of all topics' owners."""


def share(
    mode: RequestMode,
    strategy_name: str | None,
    member: str,
    queues: Collection[MessageQueue],
    members: Collection[str],
) -> list[MessageQueue] | None:
    """Return a member's queues; None if the member should keep those it has."""
    strategy = _STRATEGIES.get(strategy_name or "")
    if strategy is None:
        return None
    group = mode.consumer_group or ""
    sorted_queues, sorted_members = sort_queues(set(queues)), java_sorted(tuple(members))
    try:
        if mode.mode is MessageRequestMode.POP:
            return _pop_share(strategy, mode, member, sorted_queues, sorted_members)
        return strategy.allocate(group, member, sorted_queues, sorted_members)
    except AllocationInputInvalid:
        return None


def _pop_share(
    strategy: Strategy,
    mode: RequestMode,
    member: str,
    queues: Sequence[MessageQueue],
    members: Sequence[str],
) -> list[MessageQueue]:
    """Return the queues a member pops from: its own, and those of the next members it shares with.

    Without sharing, or if it would reach all members, members pop from whole brokers. With fewer
    queues than members, each member has one, in turn.
    """
    group, sharing = mode.consumer_group or "", mode.pop_share_queue_num
    if sharing <= 0 or sharing >= len(members) - 1:
        return list(
            {MessageQueue(each.topic, each.broker_name, ANY_QUEUE): None for each in queues}
        )
    if len(members) > len(queues):
        if not member or not queues:
            raise AllocationInputInvalid("no member or no queues")
        return [queues[members.index(member) % len(queues)]] if member in members else []
    result = dict.fromkeys(strategy.allocate(group, member, queues, members))
    if member in members:
        own = members.index(member)
        for step in range(1, sharing + 1):
            other = members[(own + step) % len(members)]
            result |= dict.fromkeys(strategy.allocate(group, other, queues, members))
    return list(result)


class RequestModeTable:
    """How groups get the messages of topics, where an operator has chosen it."""

    kind = "request_mode"

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, RequestMode]] = {}
        self._unsaved: set[str] = set()

    def set(self, mode: RequestMode, topic: str, group: str) -> None:
        """Keep an operator's choice."""
        self.entries.setdefault(topic, {})[group] = mode
        self._unsaved.add(topic)

    def mode(self, topic: str, group: str, standard: MessageRequestMode) -> RequestMode:
        """Return the mode of a topic for a group; retry topics are pulled unless said otherwise."""
        chosen = self.entries.get(topic, {}).get(group)
        if chosen is not None:
            return chosen
        if is_retry_topic(topic):
            standard = MessageRequestMode.PULL
        sharing = -1 if standard is MessageRequestMode.POP else 0
        return RequestMode(
            topic=topic, consumer_group=group, mode=standard, pop_share_queue_num=sharing
        )

    def load(self, documents: Iterable[tuple[str, bytes]]) -> None:
        """Take over what was saved before. Raises `BodyMalformed` for what was not."""
        for topic, document in documents:
            self.entries[topic] = decode_body(document, dict[str, RequestMode])

    def unsaved(self) -> dict[str, bytes | None]:
        """Return the documents to save."""
        return {topic: encode_body(self.entries[topic]) for topic in self._unsaved}

    def saved(self, topics: Iterable[str]) -> None:
        """Record that these documents were saved as they are now."""
        self._unsaved.difference_update(topics)
