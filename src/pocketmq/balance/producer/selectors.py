"""Choosing a queue without regard to brokers' health: turns, a key, chance, a room, a function.

All take the topic's queues in their published order and return one of them. A queue chosen by the
caller is not changed by retries (see `SendPlan.pinned`). The round-robin index is explicit state:
Java has one for each thread and topic, started at a random place so that many producers do not all
start with the same queue; which threads or tasks share one is the caller's choice. Chance is an
argument: nothing here draws numbers by itself.
"""

from collections.abc import Callable, Collection, Sequence

from pocketmq.errors import InvalidInput, QueueNotSelected
from pocketmq.model import Message, MessageQueue
from pocketmq.model.java_strings import int32, java_hash, java_split

Chance = Callable[[int], int]
"""Returns a number from 0 up to, but not including, its argument, as `random.randrange` does."""
_MASK = 0x7FFF_FFFF
OrderingKey = str | int
Selector = Callable[[Sequence[MessageQueue], Message, object], MessageQueue]
"""A caller's own choice: given the queues, the message and the caller's argument."""
_LONG_LIMITS = range(-(1 << 63), 1 << 63)
_TRUE_HASH, _FALSE_HASH = 1231, 1237


class RoundRobin:
    """A producer's round-robin index (Java: ThreadLocalIndex). Not safe across threads.

    Java counts in 32 signed bits and drops the sign when it reads; counting in 31 bits gives the
    same numbers, also past the overflow, in 4.x and 5.x alike.
    """

    __slots__ = ("index",)

    def __init__(self, index: int = 0) -> None:
        """Start at `index`; the first queue is the one after it."""
        self.index = index & _MASK

    @classmethod
    def begun_by(cls, chance: Chance) -> "RoundRobin":
        """Start at a random index."""
        return cls(chance(1 << 32))

    def restart(self, chance: Chance) -> None:
        """Jump to a random index, as 5.x does before each retry, so that retries spread."""
        self.index = chance(_MASK)

    def advance(self) -> int:
        """Take the next turn's number, from 0 to 2³¹−1."""
        self.index = index = self.index + 1 & _MASK
        return index

    def next(self, queues: Sequence[MessageQueue]) -> MessageQueue:
        """Take the next queue. `queues` must not be empty."""
        self.index = index = self.index + 1 & _MASK
        return queues[index % len(queues)]

    def next_avoiding(self, queues: Sequence[MessageQueue], broker: str) -> MessageQueue:
        """Take the next queue of another broker; of `broker` only if it is alone.

        Checks each queue once, then takes the next one whatever it is.
        """
        for _ in range(len(queues)):
            queue = self.next(queues)
            if queue.broker_name != broker:
                return queue
        return self.next(queues)


def key_hash(key: OrderingKey) -> int:
    """Return Java's `hashCode()` of an ordering key.

    A number counts as Java's `Integer` if it fits one, else as a `Long`. The two differ for
    negative numbers: where Java peers use a `Long`, pass `long_hash(number)` as the key.
    Raises `InvalidInput` for other types and for numbers past 64 bits.
    """
    if isinstance(key, str):
        return java_hash(key)
    if isinstance(key, bool):
        return _TRUE_HASH if key else _FALSE_HASH
    if isinstance(key, int):
        return key if int32(key) == key else long_hash(key)
    raise InvalidInput(f"an ordering key must be str or int, not {type(key).__name__}")


def long_hash(number: int) -> int:
    """Return Java's `Long.hashCode()`. Raises `InvalidInput` past 64 bits."""
    if number not in _LONG_LIMITS:
        raise InvalidInput("a numeric ordering key must fit in 64 bits")
    return int32(number ^ (number >> 32))


def by_hash(queues: Sequence[MessageQueue], key: OrderingKey) -> MessageQueue:
    """Choose by an ordering key, as Java's `SelectMessageQueueByHash` does.

    The same key goes to the same queue as long as the route stays as it is. Java takes the
    remainder first and its absolute value after, so the smallest hash is no special case.
    Raises `InvalidInput` without queues or for a key of a wrong type.
    """
    return queues[abs(key_hash(key)) % _count(queues)]


def by_chance(queues: Sequence[MessageQueue], chance: Chance) -> MessageQueue:
    """Choose at random, as Java's `SelectMessageQueueByRandom` does.

    Raises `InvalidInput` without queues.
    """
    return queues[chance(_count(queues))]


def by_machine_room(
    queues: Sequence[MessageQueue], rooms: Collection[str], robin: RoundRobin
) -> MessageQueue:
    """Choose by round robin among the queues of brokers in the given machine rooms.

    A broker's room is what stands before the `@` of its name, as in the `MACHINE_ROOM` allocation.
    (Java's `SelectMessageQueueByMachineRoom` is unfinished and selects nothing.)
    Raises `QueueNotSelected` when no broker of the topic is in these rooms.
    """
    near = [queue for queue in queues if _room(queue.broker_name) in rooms]
    if not near:
        topic = queues[0].topic if queues else ""
        listed = ", ".join(sorted(rooms)) or "none given"
        raise QueueNotSelected(topic, f"it has no broker in these machine rooms: {listed}")
    return robin.next(near)


def pinned(
    queues: Collection[MessageQueue], queue: MessageQueue, message_topic: str
) -> MessageQueue:
    """Check a queue the caller chose.

    Raises `InvalidInput` for a queue of another topic, `QueueNotSelected` for one the route does
    not publish (Java would send and let the broker refuse).
    """
    if queue.topic != message_topic:
        raise InvalidInput(
            f"the message is for topic {message_topic!r}, but the queue belongs to {queue.topic!r}"
        )
    if queue not in queues:
        raise QueueNotSelected(queue.topic, f"{queue} is not a writable queue of the route")
    return queue


def by_function(
    queues: Sequence[MessageQueue], message: Message, argument: object, selector: Selector
) -> MessageQueue:
    """Let the caller's function choose, and check its result.

    Its own errors pass through. Raises `QueueNotSelected` unless it returns one of the queues.
    """
    queue: object = selector(queues, message, argument)
    if not isinstance(queue, MessageQueue):
        raise QueueNotSelected(
            message.topic, f"the selector returned {type(queue).__name__}, not a MessageQueue"
        )
    if queue not in queues:
        raise QueueNotSelected(
            message.topic, f"the selector returned {queue}, which is not one of the queues"
        )
    return queue


def _room(broker_name: str) -> str | None:
    parts = java_split(broker_name, "@")
    return parts[0] if len(parts) == 2 else None


def _count(queues: Sequence[MessageQueue]) -> int:
    if not queues:
        raise InvalidInput("the topic has no queues to send to")
    return len(queues)
