"""What is measured for Prometheus alone: durations and sizes, in the buckets of RocketMQ 5.x.

Exists only on a broker that shows metrics (elsewhere it is None), so no other broker pays for it.
Independent of store and wire. Belongs to the broker's loop, so it needs no lock.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import TypeAlias

from pocketmq.protocol import RequestCode

Key: TypeAlias = tuple[str | int | bool, ...]

_SECONDS_TO_A_DAY = (5, 60, 600, 3600, 12 * 3600, 24 * 3600)
_MOST = 10_000
_TOPICS = (RequestCode.UPDATE_AND_CREATE_TOPIC, RequestCode.UPDATE_AND_CREATE_TOPIC_LIST)
_GROUPS = (
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
)


class Histogram:
    """The number of values in each bucket, by key."""

    __slots__ = ("bounds", "counts", "sums")

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts: dict[Key, list[int]] = {}
        self.sums: dict[Key, float] = {}

    def add(self, key: Key, value: float, times: int = 1) -> None:
        """Count a value. Beyond `_MOST` keys new ones are ignored, to bound memory."""
        counts = self.counts.get(key)
        if counts is None:
            if len(self.counts) >= _MOST:
                return
            counts = self.counts[key] = [0] * (len(self.bounds) + 1)
            self.sums[key] = 0.0
        counts[bisect_left(self.bounds, value)] += times
        self.sums[key] += value * times


class Counts:
    """The number of events, by key."""

    __slots__ = ("by_key",)

    def __init__(self) -> None:
        self.by_key: dict[Key, int] = {}

    def add(self, key: Key, count: int = 1) -> None:
        """Count; beyond `_MOST` keys new ones are ignored, to bound memory."""
        if key in self.by_key or len(self.by_key) < _MOST:
            self.by_key[key] = self.by_key.get(key, 0) + count


class Measures:
    """All measurements of a broker. Times are of the loop's clock unless they are of messages."""

    def __init__(self) -> None:
        self.began = 0.0
        """When the request that is being answered was dispatched."""
        self.suspended = False
        """Whether that request was suspended to wait for messages."""
        self.rpc = Histogram((1, 3, 5, 7, 10, 100, 1000, 2000, 3000))
        """Milliseconds to a response; by request code, response code and being suspended."""
        self.size = Histogram((1024, 4096, 512 << 10, 1 << 20, 2 << 20, 4 << 20))
        """Bytes of stored messages, by topic; of a batch their mean counts once, as in Java."""
        self.finished = Histogram(_SECONDS_TO_A_DAY)
        """Seconds from a half message to its commit, by topic."""
        self.delay = Histogram((60, 600, 3600, 12 * 3600, 24 * 3600, 72 * 3600))
        """Requested delays in seconds, by topic."""
        self.topic_made = Histogram((10, 100, 1000, 3000, 5000))
        """Milliseconds that requests to create topics took, by success or failure."""
        self.group_made = Histogram((10, 100, 1000, 3000, 5000))
        """The same of consumer groups."""
        self.committed, self.rolled_back = Counts(), Counts()
        """Transactions by topic."""
        self.timed_in, self.timed_out = Counts(), Counts()
        """Timed messages accepted, and those delivered, by topic."""
        self.revived = Counts()
        """Popped messages redelivered because no ack came, by topic and group."""

    def answered(self, code: int, answer: int, now: float, times: int = 1) -> None:
        """Count the answer to the request that began at `began`, or to several that did."""
        took_ms = (now - self.began) * 1000
        self.rpc.add((code, answer, self.suspended), took_ms, times)
        if code in _TOPICS:
            self.topic_made.add((_status(answer),), took_ms)
        elif code in _GROUPS:
            self.group_made.add((_status(answer),), took_ms)


def _status(answer: int) -> str:
    return "failure" if answer else "success"
