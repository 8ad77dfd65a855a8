"""What the driver sees of a cluster: the queues that are read, and how far they reach.

Which queues there are is asked now and then, where they end every time. Runs in one thread.
"""

import re
import time
from collections.abc import Callable

from pocketmq.blocking.record_reader import Bounds, RecordReader
from pocketmq.errors import MQError, RouteNotFound
from pocketmq.model.names import is_dead_letter_topic, is_retry_topic
from pocketmq.model.queue import MessageQueue
from pocketmq.spark.source_options import Topics


class ClusterView:
    """The queues of some topics."""

    def __init__(
        self,
        reader: RecordReader,
        topics: Topics,
        *,
        discovery: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reader = reader
        self._topics = topics
        self._discovery = discovery
        self._clock = clock
        self._queues: list[MessageQueue] = []
        self._queues_at: float | None = None
        self._ends: dict[MessageQueue, int] = {}
        self._ends_at: float | None = None

    def queues(self, *, fresh: bool = False) -> list[MessageQueue]:
        """List the queues there are; a topic that has no route is left out if others have one.

        Raises `RouteNotFound` if none of the topics named has a route.
        """
        now = self._clock()
        known = self._queues_at is not None and now - self._queues_at < self._discovery
        if fresh or not known:
            self._queues = self._find()
            self._queues_at = now
        return self._queues

    def bounds(self, *, fresh: bool = True) -> dict[MessageQueue, Bounds]:
        """Give what each queue holds, by now."""
        return {queue: self.reader.bounds(queue) for queue in self.queues(fresh=fresh)}

    def ends(self, *, age: float = 0.0, fresh: bool = False) -> dict[MessageQueue, int]:
        """Give where each queue ends, not longer than `age` ago; `fresh` looks for queues, too."""
        now = self._clock()
        if fresh or self._ends_at is None or now - self._ends_at >= age:
            self._ends = {queue: self.reader.end(queue) for queue in self.queues(fresh=fresh)}
            self._ends_at = now
        return self._ends

    def first(self, queue: MessageQueue) -> int:
        """Give the first offset a queue holds."""
        return self.reader.bounds(queue).first

    def _find(self) -> list[MessageQueue]:
        if self._topics.assigned:
            return self._find_assigned(self._topics.assigned)
        names = self._topics.names
        if self._topics.pattern is not None:
            pattern = re.compile(self._topics.pattern)
            names = tuple(filter(pattern.fullmatch, filter(_of_users, self.reader.topics())))
        return self._queues_of(names, required=self._topics.pattern is None)

    def _find_assigned(self, assigned: tuple[MessageQueue, ...]) -> list[MessageQueue]:
        names = tuple(dict.fromkeys(queue.topic for queue in assigned))
        there = set(self._queues_of(names, required=True))
        return [queue for queue in assigned if queue in there]

    def _queues_of(self, names: tuple[str, ...], *, required: bool) -> list[MessageQueue]:
        found: list[MessageQueue] = []
        missing: MQError | None = None
        for name in names:
            try:
                found += self.reader.queues(name)
            except RouteNotFound as error:
                missing = error
        if missing is not None and not found and required:
            raise missing
        return found


def _of_users(topic: str) -> bool:
    """Leave out what a pattern such as `.*` does not mean: retries and dead letters of groups."""
    return not is_retry_topic(topic) and not is_dead_letter_topic(topic)
