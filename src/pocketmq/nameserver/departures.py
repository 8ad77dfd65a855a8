"""Brokers that have left: the queues that their topics had there, kept for three days.

Routes name live brokers only, so a reader of a topic cannot tell one that lies on one broker from
one that lies on two, of which one is down. This table can, and is asked like the key-value store.
Java's name server has nothing of the kind. Times are arguments.
"""

from collections.abc import Iterable

import msgspec

from pocketmq.model import Permission, QueueData

KEPT = 72 * 3600.0
"""Seconds: as long as brokers keep messages by default; nothing could be read after that."""
MAX_ENTRIES = 200_000
"""Topics of departed brokers, all brokers together; the first to leave are dropped first."""


class _Left(msgspec.Struct):
    heard: float
    clusters: frozenset[str]
    queues: dict[str, int]


class Departures:
    """Readable queues of departed brokers, by topic. Belongs to one thread."""

    def __init__(self, most: int = MAX_ENTRIES) -> None:
        self._most = most
        self._entries = 0
        self._brokers: dict[str, _Left] = {}  # the first to leave is the first

    def leave(
        self,
        broker: str,
        clusters: Iterable[str],
        datas: Iterable[tuple[str, QueueData]],
        heard: float,
    ) -> None:
        """Note what a broker of these clusters held that was last heard at a time."""
        queues = {
            topic: data.read_queue_nums
            for topic, data in datas
            if data.perm & Permission.READ and data.read_queue_nums > 0
        }
        self.come_back(broker)
        if not 0 < len(queues) <= self._most:
            return
        self._brokers[broker] = _Left(heard, frozenset(clusters), queues)
        self._entries += len(queues)
        while self._entries > self._most:
            self.come_back(next(iter(self._brokers)))

    def come_back(self, broker: str) -> None:
        """Forget a broker: it has registered again, and what it lacks now was deleted."""
        left = self._brokers.pop(broker, None)
        if left is not None:
            self._entries -= len(left.queues)

    def forget(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic that was deleted, everywhere or in one cluster."""
        for broker, left in list(self._brokers.items()):
            if cluster and cluster not in left.clusters:
                continue
            if left.queues.pop(topic, None) is not None:
                self._entries -= 1
                if not left.queues:
                    del self._brokers[broker]

    def of(self, topic: str, now: float) -> str | None:
        """Return the queues of a topic on departed brokers; None if there are none."""
        self._expire(now)
        found = [
            f"{broker}:{left.queues[topic]}"
            for broker, left in self._brokers.items()
            if topic in left.queues
        ]
        return ";".join(found) or None

    def all(self, now: float) -> dict[str, str]:
        """Return the same for every topic that has some."""
        self._expire(now)
        found: dict[str, list[str]] = {}
        for broker, left in self._brokers.items():
            for topic, count in left.queues.items():
                found.setdefault(topic, []).append(f"{broker}:{count}")
        return {topic: ";".join(each) for topic, each in found.items()}

    def _expire(self, now: float) -> None:
        for broker in [name for name, left in self._brokers.items() if now - left.heard > KEPT]:
            self.come_back(broker)
