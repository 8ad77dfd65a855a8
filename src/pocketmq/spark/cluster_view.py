"""What the driver sees of a cluster: the queues that are read, and how far they reach.

Which queues there are is asked now and then, where they end every time. Runs in one thread.
"""

import logging
import re
import time
from collections.abc import Callable
from typing import TypeVar

from pocketmq.blocking.record_reader import Bounds, RecordReader
from pocketmq.errors import MQError, NameServersUnreachable, RouteNotFound
from pocketmq.model.names import is_dead_letter_topic, is_retry_topic
from pocketmq.model.queue import MessageQueue
from pocketmq.spark.source_options import SourceOptions, TopicSelection

logger = logging.getLogger("pocketmq.spark")

T = TypeVar("T")

REST = 5.0
"""Seconds for which a broker that does not answer is not asked again."""


class ClusterView:
    """The queues of some topics; `tolerant` ones do without brokers that do not answer."""

    def __init__(
        self,
        reader: RecordReader,
        topics: TopicSelection,
        *,
        discovery: float = 2.0,
        tolerant: bool = False,
        patience: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reader = reader
        self._topics = topics
        self._discovery = discovery
        self._tolerant = tolerant
        self._first_patience = patience
        self._away: dict[str, float] = {}  # brokers that do not answer, and when to ask again
        self._clock = clock
        self._queues: list[MessageQueue] = []
        self._queues_at: float | None = None
        self._ends: dict[MessageQueue, int] = {}
        self._ends_at: float | None = None

    def queues(self, *, fresh: bool = False) -> list[MessageQueue]:
        """List the queues there are; a topic that has no route is left out if others have one.

        While no name server answers they stay as they were. Raises `RouteNotFound` if none of the
        topics named has a route.
        """
        now = self._clock()
        known = self._queues_at is not None and now - self._queues_at < self._discovery
        if fresh or not known:
            try:
                self._queues = self._find()
            except NameServersUnreachable as error:
                if self._queues_at is None:
                    raise
                logger.warning("the queues stay as they were: %s", error)
            self._queues_at = now
        return self._queues

    def bounds(self, *, fresh: bool = True) -> dict[MessageQueue, Bounds]:
        """Give what each queue holds, by now."""
        return self._of_each(self.queues(fresh=fresh), self.reader.bounds)

    def ends(self, *, age: float = 0.0, fresh: bool = False) -> dict[MessageQueue, int]:
        """Give where each queue ends, not longer than `age` ago; `fresh` looks for queues, too."""
        now = self._clock()
        if fresh or self._ends_at is None or now - self._ends_at >= age:
            self._ends = self._of_each(self.queues(fresh=fresh), self.reader.end)
            self._ends_at = now
        return self._ends

    def first(self, queue: MessageQueue) -> int:
        """Give the first offset a queue holds."""
        return self.reader.bounds(queue).first

    def _of_each(
        self, queues: list[MessageQueue], ask: Callable[[MessageQueue], T]
    ) -> dict[MessageQueue, T]:
        """Ask about each queue; a `tolerant` view leaves those out whose broker does not answer."""
        found: dict[MessageQueue, T] = {}
        for queue in queues:
            broker = queue.broker_name
            if self._clock() < self._away.get(broker, float("-inf")):
                continue
            try:
                found[queue] = ask(queue)
            except MQError as error:
                if not self._tolerant or not error.retryable:
                    raise
                logger.warning("broker %s is left out for now: %s", broker, error)
                self._away[broker] = self._clock() + REST
        return found

    @property
    def _patience(self) -> float:
        """How long to wait for a name server: at first, or not at all."""
        return self._first_patience if self._queues_at is None else 0.0

    def _find(self) -> list[MessageQueue]:
        if self._topics.assigned:
            return self._find_assigned(self._topics.assigned)
        names = self._topics.names
        if self._topics.pattern is not None:
            pattern = re.compile(self._topics.pattern)
            there = self.reader.topics(patience=self._patience)
            names = tuple(filter(pattern.fullmatch, filter(_of_users, there)))
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
                found += self.reader.queues(name, patience=self._patience)
            except RouteNotFound as error:
                missing = error
        if missing is not None and not found and required:
            raise missing
        return found


def _of_users(topic: str) -> bool:
    """Leave out what a pattern such as `.*` does not mean: retries and dead letters of groups."""
    return not is_retry_topic(topic) and not is_dead_letter_topic(topic)


def view_of(options: SourceOptions) -> ClusterView:
    """Give a view for a source. Where queues may be missing, nobody waits for their brokers."""
    pulling = options.pulling
    tolerant = not pulling.fail_on_data_loss
    patience = pulling.reach.retry_timeout
    client = pulling.reach.client()
    reader = RecordReader(client, group=pulling.group, patience=0.0 if tolerant else patience)
    return ClusterView(
        reader,
        options.topics,
        discovery=options.discovery,
        tolerant=tolerant,
        patience=patience,
    )
