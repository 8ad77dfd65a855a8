"""Queues that should be read and are not there: which, why, and the error that names them.

Three words count for what should be there: options name topics and queues, the name server
remembers brokers that have left, and a checkpoint has the queues a stream has read. Pure.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

import msgspec

from pocketmq.errors import DataLost, OptionInvalid
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.names import is_dead_letter_topic, is_retry_topic
from pocketmq.spark.options import STAGING

Absent = Mapping[MessageQueue, str]
"""Queues that cannot be read now, and why."""

NO_ROUTE = "its topic is unknown to the name server: deleted, or all of its brokers are down"
LEFT = "its broker is not registered with the name server"
FEWER = "its topic has fewer queues on this broker now"
UNSUBSCRIBED = "its topic or queue is not selected any more by the options of the query"


class TopicSelection(msgspec.Struct, frozen=True):
    """Which queues are read; exactly one field is set."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[MessageQueue, ...] = ()

    @property
    def option(self) -> str:
        """The option that selects."""
        if self.assigned:
            return "assign"
        return "subscribe" if self.pattern is None else "subscribePattern"

    def topics(self, existing: Iterable[str]) -> tuple[str, ...]:
        """Return the topics that are selected, of those that exist if by a pattern."""
        if self.assigned:
            return tuple(dict.fromkeys(queue.topic for queue in self.assigned))
        if self.pattern is None:
            return self.names
        pattern = re.compile(self.pattern)
        return tuple(name for name in existing if _of_users(name) and pattern.fullmatch(name))

    def among(self, queues: Iterable[MessageQueue]) -> set[MessageQueue]:
        """Return those of some queues that are read."""
        found = set(queues)
        if self.assigned:
            return found.intersection(self.assigned)
        topics = set(self.topics({queue.topic for queue in found}))
        return {queue for queue in found if queue.topic in topics}


def _of_users(topic: str) -> bool:
    """Return whether a pattern such as `.*` may match.

    Not for retry and dead-letter topics, nor for that of rows that are not committed yet.
    """
    return not (is_retry_topic(topic) or is_dead_letter_topic(topic) or topic == STAGING)


class Listing(msgspec.Struct, frozen=True):
    """The queues that the name server lists, and the topics it does not know."""

    queues: tuple[MessageQueue, ...] = ()
    unrouted: tuple[str, ...] = ()

    def why_not(self, queue: MessageQueue) -> str:
        """Return why a queue is not listed."""
        if queue.topic in self.unrouted or all(queue.topic != each.topic for each in self.queues):
            return NO_ROUTE
        there = (queue.topic, queue.broker_name)
        known = any((each.topic, each.broker_name) == there for each in self.queues)
        return FEWER if known else LEFT


def unknown_topic(option: str, topic: str, existing: Collection[str]) -> OptionInvalid:
    """Return the error for a topic that no name server knows, with the nearest one that exists."""
    near = get_close_matches(topic, [name for name in existing if _of_users(name)], 1)
    hint = f"did you mean {near[0]!r}?" if near else "create it, or check the name server address"
    return OptionInvalid(option, f"is invalid: no route for topic {topic!r}; {hint}")


def unknown_queue(queue: MessageQueue, existing: Sequence[MessageQueue]) -> OptionInvalid:
    """Return the error for a queue in `assign` that its topic does not have."""
    here = [each for each in existing if each.broker_name == queue.broker_name]
    if here:
        hint = f"there are {named(here)}"
    else:
        brokers = sorted({each.broker_name for each in existing})
        near = get_close_matches(queue.broker_name, brokers, 1)
        hint = f"did you mean broker {near[0]!r}?" if near else f"brokers are {', '.join(brokers)}"
    return OptionInvalid("assign", f"names {named([queue])}, which does not exist; {hint}")


def named(queues: Iterable[MessageQueue]) -> str:
    """Return queues in words: `queues 0 to 3 of topic 'orders' on broker 'broker-a'`."""
    places: dict[tuple[str, str], list[int]] = {}
    for queue in queues:
        places.setdefault((queue.topic, queue.broker_name), []).append(queue.queue_id)
    return ", ".join(
        f"{_numbers(sorted(numbers))} of topic {topic!r} on broker {broker!r}"
        for (topic, broker), numbers in sorted(places.items())
    )


def _numbers(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"queue {numbers[0]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"queues {numbers[0]} to {numbers[-1]}"
    return f"queues {', '.join(map(str, numbers))}"


def absence(absent: Absent, at: Mapping[MessageQueue, int], waited: float = 0.0) -> DataLost:
    """Return the error that names all absent queues; `at` has the offsets reached, if known."""
    queues = sort_queues(set(absent))
    first = queues[0]
    why = absent[first] + (f" (waited {waited:g} s)" if waited else "")
    if len(queues) > 1:
        why += f"; missing as well: {named(queues[1:])}"
    offset = at.get(first, 0)
    return DataLost(first.topic, first.broker_name, first.queue_id, (offset, offset), why)
