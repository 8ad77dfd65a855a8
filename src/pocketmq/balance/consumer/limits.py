"""Flow-control thresholds: per queue, per topic, and the ranges RocketMQ accepts.

`pulling.before_pull` and `lite_pull` compare a cache with them.
"""

import msgspec

from pocketmq.balance.consumer.instructions import SetQueueLimits
from pocketmq.errors import InvalidInput

UNLIMITED = -1
"""A topic-level threshold that is not set."""
MIB = 1024 * 1024

_RANGES = {
    "count": (1, 65535),
    "size_mib": (1, 1024),
    "span": (1, 65535),
    "topic_count": (1, 6553500),
    "topic_size_mib": (1, 102400),
}
_OPTIONAL = frozenset({"topic_count", "topic_size_mib"})


class QueueLimits(msgspec.Struct, frozen=True):
    """The thresholds in force for each queue."""

    count: int
    size_mib: int
    span: int
    """Between the lowest and highest cached offset; orderly consumers ignore it."""

    def too_many(self, count: int, size: int) -> bool:
        """Return whether these cached messages or bytes exceed a limit. Only whole MiB count."""
        return count > self.count or size // MIB > self.size_mib


class PullLimits(msgspec.Struct, frozen=True):
    """How much a push consumer may cache before it pauses pulling, as configured.

    Raises `InvalidInput` for values Java's consumer refuses at start.
    """

    count: int = 1000
    """Messages of a queue."""
    size_mib: int = 100
    """MiB of a queue."""
    span: int = 2000
    """Offsets between the first and the last message of a queue; not for orderly consumers."""
    topic_count: int = UNLIMITED
    """Messages of a topic; -1: no limit."""
    topic_size_mib: int = UNLIMITED
    """MiB of a topic; -1: no limit."""

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if name in _OPTIONAL and value == UNLIMITED:
                continue
            if not low <= value <= high:
                raise InvalidInput(f"pull limit {name} is {value}; allowed are {low} to {high}")

    def in_force(self, change: SetQueueLimits | None = None) -> QueueLimits:
        """Return each queue's limits, after the last `SetQueueLimits` if there was one."""
        count = self.count if change is None or change.count is None else change.count
        size_mib = self.size_mib if change is None or change.size_mib is None else change.size_mib
        return QueueLimits(count, size_mib, self.span)


class LitePullLimits(msgspec.Struct, frozen=True):
    """How much a pull consumer may cache: in all queues together, and in each."""

    total: int = 10000
    """Messages of all queues."""
    queue: QueueLimits = QueueLimits(count=1000, size_mib=100, span=2000)
    """Messages, MiB and span of each queue."""


def spread_topic_limits(limits: PullLimits, owned: int) -> SetQueueLimits | None:
    """Divide the topic-level thresholds by the number of `owned` queues, of whatever topic.

    None when there is nothing to set: no queue is owned, or no topic-level threshold is set.
    """
    if owned == 0 or (limits.topic_count == UNLIMITED and limits.topic_size_mib == UNLIMITED):
        return None
    return SetQueueLimits(_share(limits.topic_count, owned), _share(limits.topic_size_mib, owned))


def _share(threshold: int, owned: int) -> int | None:
    return None if threshold == UNLIMITED else max(1, threshold // owned)
