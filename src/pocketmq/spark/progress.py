"""The progress of a stream, committed to a consumer group so that operators see its lag.

For display only: a stream never reads it back, the checkpoint is the truth. A commit that fails is
made up for by a later one.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pocketmq.blocking.record_reader import RecordReader
from pocketmq.errors import MQError, TransportError
from pocketmq.model import MessageQueue
from pocketmq.spark.offsets import Offsets, StreamOffset, lag
from pocketmq.spark.options import Reach

logger = logging.getLogger("pocketmq.spark")

_REST = 5.0
"""Seconds to wait after a cluster did not respond."""


class ProgressPublisher:
    """Commits offsets of one group. Used by one thread."""

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
        """Commit what is new; Spark's commits arrive late, so an offset is never set back."""
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
            logger.warning(
                'progress commit failed: group=%s error="%s"; retrying later', self._group, error
            )
            if isinstance(error, TransportError) or error.retryable:
                self._rest_until = self._clock() + _REST

    def close(self) -> None:
        """Close connections."""
        self._reader.close()


class StreamLag(msgspec.Struct, frozen=True):
    """The number of messages a stream has not read yet."""

    total: int
    queues: Offsets

    @property
    def worst(self) -> int:
        """The lag of the queue farthest behind."""
        return max(self.queues.values(), default=0)


def stream_lag(progress: Mapping[str, Any] | Any) -> StreamLag:
    """Return the lag of a query from its progress, such as `query.lastProgress`.

    Other sources of the query are ignored.
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
    """Read an offset of a progress, which is JSON text or a value, depending on Spark's API."""
    found = source.get(name, source.get(f"_{name}"))
    try:
        if isinstance(found, str):
            found = msgspec.json.decode(found)
        return StreamOffset.from_json(found).queues if isinstance(found, Mapping) else None
    except ValueError:
        return None
