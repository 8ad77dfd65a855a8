"""The fault table for a producer that many threads send with."""

import threading

from pocketmq.balance.producer.fault_table import BrokerHealth, FaultTable
from pocketmq.balance.profile import Profile


class SharedFaultTable(FaultTable):
    """A fault table that any thread may ask and tell. What looks at one broker needs no lock."""

    def __init__(self, profile: Profile, *, detector: bool = False, worst_index: int = 0) -> None:
        super().__init__(profile, detector=detector, worst_index=worst_index)
        self._lock = threading.Lock()

    def update(
        self, broker: str, latency: float, *, isolate: bool, reachable: bool = True, now: float
    ) -> None:
        """Learn how a try went."""
        with self._lock:
            super().update(broker, latency, isolate=isolate, reachable=reachable, now=now)

    def forget(self, broker: str) -> None:
        """Drop all that is known of a broker."""
        with self._lock:
            super().forget(broker)

    def take_due(self, now: float, interval: float) -> list[str]:
        """List the brokers whose probe is due."""
        with self._lock:
            return super().take_due(now, interval)

    def least_bad(self, now: float) -> str | None:
        """Pick a broker when all are paused."""
        with self._lock:
            return super().least_bad(now)

    def snapshot(self, now: float) -> tuple[BrokerHealth, ...]:
        """Show every broker the table knows."""
        with self._lock:
            return super().snapshot(now)
