"""Taking turns: the index a producer walks a topic's queues with.

The index is explicit state. Java has one for each thread and topic, begun at a random place so
that many producers do not all start with the same queue; which threads or tasks share one is the
caller's choice. Chance is an argument: nothing here draws numbers by itself.
"""

from collections.abc import Callable, Sequence

from pocketmq.model.queue import MessageQueue

Chance = Callable[[int], int]
"""Gives a number from 0 up to, but not including, its argument, as `random.randrange` does."""

_MASK = 0x7FFF_FFFF


class RoundRobin:
    """Where a producer stands in its turn (Java: ThreadLocalIndex). Not safe across threads.

    Java counts in 32 signed bits and drops the sign when it reads; counting in 31 bits gives the
    same numbers, also past the overflow, in 4.x and 5.x alike.
    """

    __slots__ = ("index",)

    def __init__(self, index: int = 0) -> None:
        """Stand at `index`; the first turn is the one after it."""
        self.index = index & _MASK

    @classmethod
    def begun_by(cls, chance: Chance) -> "RoundRobin":
        """Begin anywhere."""
        return cls(chance(1 << 32))

    def restart(self, chance: Chance) -> None:
        """Jump anywhere, as 5.x does before each retry so that retries do not march in step."""
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

        Looks at as many queues as there are, then takes the next one whatever it is.
        """
        for _ in range(len(queues)):
            queue = self.next(queues)
            if queue.broker_name != broker:
                return queue
        return self.next(queues)
