"""The driver's view of a cluster: the queues that are read, and their bounds.

The list of queues is refreshed now and then, their ends with every call. Used by one thread.
"""

import logging
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from pocketmq import errors
from pocketmq.blocking.record_reader import Bounds, RecordReader
from pocketmq.model import MessageQueue
from pocketmq.model.names import is_dead_letter_topic, is_retry_topic
from pocketmq.spark.offsets import Offsets, OffsetSpec
from pocketmq.spark.planning import data_lost, fail_or_warn
from pocketmq.spark.source_options import SourceOptions, TopicSelection

logger = logging.getLogger("pocketmq.spark")

T = TypeVar("T")

REST = 5.0
"""Seconds for which a broker that does not respond is skipped."""


class ClusterView:
    """The queues of some topics; a `tolerant` view leaves out brokers that do not respond."""

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
        self._away: dict[str, float] = {}  # brokers that do not respond, and when to retry
        self._clock = clock
        self._queues: list[MessageQueue] = []
        self._queues_at: float | None = None
        self._ends: dict[MessageQueue, int] = {}
        self._ends_at: float | None = None

    def queues(self, *, fresh: bool = False) -> list[MessageQueue]:
        """Return the queues; a topic without a route is left out if others have one.

        While no name server responds the last list is kept. Raises `RouteNotFound` if none of the
        topics named has a route.
        """
        now = self._clock()
        known = self._queues_at is not None and now - self._queues_at < self._discovery
        if fresh or not known:
            try:
                self._queues = self._find()
            except errors.NameServersUnreachable as error:
                if self._queues_at is None:
                    raise
                logger.warning("name servers unreachable; keeping the known queues: %s", error)
            self._queues_at = now
        return self._queues

    def bounds(self, *, fresh: bool = True) -> dict[MessageQueue, Bounds]:
        """Return the bounds of each queue, as they are now."""
        return self._of_each(self.queues(fresh=fresh), self.reader.bounds)

    def ends(self, *, age: float = 0.0, fresh: bool = False) -> dict[MessageQueue, int]:
        """Return the end of each queue, at most `age` seconds old; `fresh` lists queues again."""
        now = self._clock()
        if fresh or self._ends_at is None or now - self._ends_at >= age:
            self._ends = self._of_each(self.queues(fresh=fresh), self.reader.end)
            self._ends_at = now
        return self._ends

    def first(self, queue: MessageQueue) -> int:
        """Return the first offset a queue holds."""
        return self.reader.bounds(queue).first

    def offsets_at(
        self, spec: OffsetSpec, bounds: Mapping[MessageQueue, Bounds], option: str, *, strict: bool
    ) -> Offsets:
        """Return the offset in each queue that an option asks for.

        Raises `OptionInvalid` for an offset of a queue that is not read, and `DataLost` for one
        that the queue does not hold; if not `strict`, the nearest one that it holds is taken.
        """
        for queue in spec.each:
            if queue not in bounds:
                raise errors.OptionInvalid(
                    option, f"names {queue}, which is not among the queues read"
                )
        found: Offsets = {}
        for queue, held in bounds.items():
            offset = spec.of(queue, held, partial(self.reader.offset_at, queue))
            near = min(max(offset, held.first), held.end)
            if near != offset and queue in spec.each:
                span = (offset, held.first) if offset < held.first else (held.end, offset)
                why = f"{option} says {offset}, and it holds {held.first} to {held.end - 1}"
                fail_or_warn(data_lost(queue, span, why), fail=strict)
            found[queue] = near
        return found

    def _of_each(
        self, queues: list[MessageQueue], ask: Callable[[MessageQueue], T]
    ) -> dict[MessageQueue, T]:
        """Call `ask` for each queue; a `tolerant` view skips queues of brokers that are down."""
        found: dict[MessageQueue, T] = {}
        for queue in queues:
            broker = queue.broker_name
            if self._clock() < self._away.get(broker, float("-inf")):
                continue
            try:
                found[queue] = ask(queue)
            except errors.MQError as error:
                if not self._tolerant or not error.retryable:
                    raise
                logger.warning(
                    "broker %s does not respond, skipping its queues for %.0f s: %s",
                    broker,
                    REST,
                    error,
                )
                self._away[broker] = self._clock() + REST
        return found

    @property
    def _patience(self) -> float:
        """Seconds to wait for a name server: only for the first list."""
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
        missing: errors.MQError | None = None
        for name in names:
            try:
                found += self.reader.queues(name, patience=self._patience)
            except errors.RouteNotFound as error:
                missing = error
        if missing is not None and not found and required:
            raise missing
        return found


def _of_users(topic: str) -> bool:
    """Return whether a pattern such as `.*` may match: not for retry and dead-letter topics."""
    return not is_retry_topic(topic) and not is_dead_letter_topic(topic)


def view_of(options: SourceOptions) -> ClusterView:
    """Return a view for a source; where data loss is tolerated it does not wait for brokers."""
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
