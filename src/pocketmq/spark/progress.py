"""How far a stream has come, told to its consumer group for operators to see.

For show only: nothing is ever read back from there, and a broker that cannot be told is told later.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pocketmq.blocking.record_reader import RecordReader
from pocketmq.errors import MQError, TransportError
from pocketmq.model.queue import MessageQueue
from pocketmq.spark.offsets import Offsets, StreamOffset, lag
from pocketmq.spark.options import Reach

logger = logging.getLogger("pocketmq.spark")

_REST = 5.0
"""Seconds for which a cluster that does not answer is left in peace."""


class ProgressPublisher:
    """Publishes offsets of one group. Runs in one thread."""

    def __init__(
        self, reach: Reach, group: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reader = RecordReader(reach.client(), patience=0.0)
        self._group = group
        self._clock = clock
        self._published: Offsets = {}
        self._introduced: set[str] = set()
        self._rest_until = float("-inf")

    def publish(self, reached: Mapping[MessageQueue, int]) -> None:
        """Tell the brokers what is new; Spark's commits come late, so nothing goes back."""
        news = {q: at for q, at in reached.items() if at > self._published.get(q, -1)}
        if not news or self._clock() < self._rest_until:
            return
        try:
            topics = {queue.topic for queue in news} - self._introduced
            if topics:
                self._reader.introduce(self._group, sorted(topics))
                self._introduced |= topics
            for queue, at in news.items():
                self._reader.commit(self._group, queue, at)
                self._published[queue] = at
        except MQError as error:
            logger.warning("the progress of group %s is not published: %s", self._group, error)
            if isinstance(error, TransportError) or error.retryable:
                self._rest_until = self._clock() + _REST

    def close(self) -> None:
        """Let go of connections."""
        self._reader.close()


class StreamLag(msgspec.Struct, frozen=True):
    """How many messages a stream has still to read."""

    total: int
    queues: Offsets

    @property
    def worst(self) -> int:
        """That of the queue farthest behind."""
        return max(self.queues.values(), default=0)


def stream_lag(progress: Mapping[str, Any] | Any) -> StreamLag:
    """Give the lag of a query from its progress, such as `query.lastProgress`.

    Sources other than this one count for nothing.
    """
    sources = progress["sources"] if isinstance(progress, Mapping) else progress.sources
    queues: Offsets = {}
    for source in sources:
        found = source if isinstance(source, Mapping) else source.__dict__
        latest, reached = _offset(found, "latestOffset"), _offset(found, "endOffset")
        if latest is not None and reached is not None:
            queues |= lag(latest, reached)
    return StreamLag(sum(queues.values()), queues)


def _offset(source: Mapping[str, Any], name: str) -> Offsets | None:
    """Read an offset of a progress: JSON text in some places, its value in others."""
    found = source.get(name, source.get(f"_{name}"))
    try:
        if isinstance(found, str):
            found = msgspec.json.decode(found)
        return StreamOffset.from_json(found).queues if isinstance(found, Mapping) else None
    except ValueError:
        return None
