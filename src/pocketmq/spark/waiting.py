"""Waiting for queues that should be there: a broker may be restarting, a route may be late.

After `retryTimeout` their absence is an error that names them all, or, where data loss is
tolerated, a warning, and the query continues without them.
"""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from pocketmq.model import MessageQueue
from pocketmq.spark.attendance import absence
from pocketmq.spark.cluster_view import Look
from pocketmq.spark.planning import fail_or_warn

T = TypeVar("T")

PAUSE = 0.2
"""Seconds between two looks."""


class Waiting:
    """Waits for absent queues, once for each absence. Used by one thread."""

    def __init__(
        self,
        patience: float,
        *,
        strict: bool,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._patience = patience
        self._strict = strict
        self._clock = clock
        self._sleep = sleep
        self.waived: set[MessageQueue] = set()
        """Queues that were waited for in vain, and have not come back since."""

    def complete(
        self, look: Callable[[], Look[T]], at: Mapping[MessageQueue, int] | None = None
    ) -> Look[T]:
        """Return the first look that misses nothing, or the last one after `patience` seconds.

        `at` has the offsets reached, for the error. Raises `DataLost` for queues that stay absent,
        unless data loss is tolerated.
        """
        deadline = self._clock() + self._patience
        while True:
            seen = look()
            self.waived &= seen.absent.keys()
            missed = seen.absent.keys() - self.waived
            if not missed:
                return seen
            if self._clock() + PAUSE > deadline:
                break
            self._sleep(PAUSE)
        self.waive({queue: seen.absent[queue] for queue in missed}, at or {}, self._patience)
        return seen

    def waive(
        self,
        absent: Mapping[MessageQueue, str],
        at: Mapping[MessageQueue, int],
        waited: float = 0.0,
    ) -> None:
        """Raise `DataLost` for absent queues, or log it and do without them from now on."""
        news = {queue: why for queue, why in absent.items() if queue not in self.waived}
        if news:
            fail_or_warn(absence(news, at, waited), fail=self._strict)
            self.waived |= news.keys()
