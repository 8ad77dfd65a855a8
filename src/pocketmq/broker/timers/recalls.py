"""Which timed messages were taken back, by the moment at which they would be due."""

import heapq
from collections.abc import Set as AbstractSet


class Recalls:
    """Keys of messages that must not be delivered."""

    def __init__(self) -> None:
        self._keys: dict[int, set[bytes]] = {}
        self._moments: list[int] = []

    def add(self, due_ms: int, key: bytes) -> None:
        """Take note of a message that is due at a moment and shall not be delivered."""
        if due_ms not in self._keys:
            heapq.heappush(self._moments, due_ms)
            self._keys[due_ms] = set()
        self._keys[due_ms].add(key)

    def get(self, due_ms: int) -> AbstractSet[bytes] | None:
        """Give the keys taken back of those due at a moment."""
        return self._keys.get(due_ms)

    def forget(self, done_ms: int) -> None:
        """Forget what would have been due up to a moment."""
        while self._moments and self._moments[0] <= done_ms:
            del self._keys[heapq.heappop(self._moments)]
