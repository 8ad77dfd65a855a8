"""How much threads may hand to a producer before they wait: a bound on sends and on their bytes."""

import threading
import time

from pocketmq.client.producer.window import ByteBudget


class Gate:
    """Room for sends. Any thread enters and waits; whoever ends a send makes room again."""

    def __init__(self, most: int, budget: ByteBudget) -> None:
        self._most = most
        self._budget = budget
        self._count = 0
        self._bytes = 0
        self._waiting = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def try_enter(self, size: int) -> bool:
        """Enter if there is room."""
        with self._lock:
            if self._count and (
                self._count >= self._most or self._bytes + size > self._budget.limit
            ):
                return False
            self._count += 1
            self._bytes += size
            return True

    def enter(self, size: int, timeout: float) -> bool:
        """Enter, waiting for room at most so many seconds; False if there was none."""
        with self._changed:
            if not self._wait(size, timeout):
                return False
            self._count += 1
            self._bytes += size
            return True

    def wait_for_room(self) -> None:
        """Wait until a small send could enter at once."""
        with self._changed:
            while not self._has_room(0):
                self._wait(0, 60.0)

    def leave(self, size: int) -> None:
        """Make room. Threads that wait go on once half of it is free: few turns, many sends."""
        with self._lock:
            self._count -= 1
            self._bytes -= size
            if self._waiting and self._count <= self._most // 2:
                self._changed.notify_all()

    def _wait(self, size: int, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        self._waiting += 1
        try:
            while not self._has_room(size):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        finally:
            self._waiting -= 1
        return True

    def _has_room(self, size: int) -> bool:
        if not self._count:
            return True
        return self._count < self._most and self._bytes + size <= self._budget.limit
