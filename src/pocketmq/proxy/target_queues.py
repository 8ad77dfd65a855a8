"""The queue that each message goes to: a message group always to the same, others in turn."""

import asyncio
from collections.abc import Sequence
from random import Random

from pocketmq.model import MessageQueue
from pocketmq.model.java_strings import java_hash
from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.translation.routes import queue_of_group
from pocketmq.proxy.wire import definition as d

AVOIDED_FOR = 30.0
"""Seconds for which a broker that could not be reached is avoided, while there are others."""
_MOST_TOPICS = 20_000


class TargetQueues:
    """Chooses queues for sends. Belongs to one event loop."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._turns: dict[str, int] = {}
        self._avoided: dict[str, float] = {}

    def choose(self, queues: Sequence[MessageQueue], message_group: str) -> MessageQueue:
        """Return the queue of the next message; raises `CallRefused` if there is none."""
        if not queues:
            raise CallRefused(d.Code.FORBIDDEN, "no writable queue")
        if message_group:
            return queue_of_group(queues, java_hash(message_group))
        topic = queues[0].topic
        if len(self._turns) >= _MOST_TOPICS:
            self._turns.clear()
        turn = self._turns.get(topic)
        if turn is None:
            turn = self._random.randrange(1 << 31)
        now = asyncio.get_running_loop().time()
        for step in range(len(queues)):
            queue = queues[(turn + step) % len(queues)]
            if self._avoided.get(queue.broker_name, 0.0) <= now:
                self._turns[topic] = turn + step + 1
                return queue
        self._turns[topic] = turn + 1
        return queues[turn % len(queues)]

    def choose_in_turn(self, queues: Sequence[MessageQueue], count: int) -> list[MessageQueue]:
        """Choose for the next messages, `count` of them, while no broker is avoided.

        Return all queues, that of the first message first; after the last one the first follows.
        """
        self.choose(queues, "")
        topic = queues[0].topic
        first = (self._turns[topic] - 1) % len(queues)
        self._turns[topic] += count - 1
        return [*queues[first:], *queues[:first]]

    def take_back(self, topic: str, count: int) -> None:
        """Undo the last choices for a topic, which no message followed: they were not its turns."""
        if topic in self._turns:
            self._turns[topic] -= count

    def avoids_any(self) -> bool:
        """Return whether a broker is avoided."""
        now = asyncio.get_running_loop().time()
        self._avoided = {name: until for name, until in self._avoided.items() if until > now}
        return bool(self._avoided)

    def failed(self, broker: str) -> None:
        """Avoid a broker for a while."""
        self._avoided[broker] = asyncio.get_running_loop().time() + AVOIDED_FOR

    def succeeded(self, broker: str) -> None:
        """Use a broker again."""
        self._avoided.pop(broker, None)
