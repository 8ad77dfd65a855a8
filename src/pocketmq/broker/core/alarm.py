"""One timer for work that is due at times of the wall clock, such as delivering messages.

Nothing is polled: an alarm that is not set has no timer. The work sets the alarm again itself, once
more is due. Independent of the work. Belongs to the broker's loop.
"""

import asyncio
import logging
from collections.abc import Callable

logger = logging.getLogger("pocketmq.broker")

RETRY_AFTER = 1.0
"""Seconds until work that failed is retried."""
LONGEST_SLEEP = 5.0
"""Seconds after which the work checks the wall clock, because that may be set forward."""
_NEVER = float("inf")


class Alarm:
    """Calls `work` at the earliest time it was set for."""

    def __init__(
        self, name: str, work: Callable[[], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Take the work and its name, which starts the log line if the work raises."""
        self._name = name
        self._work = work
        self._loop = loop
        self._open = True
        self._timer: asyncio.TimerHandle | None = None
        self._moment = _NEVER  # when the timer goes off, by the loop's clock

    @property
    def is_set(self) -> bool:
        """Whether the work will be called."""
        return self._timer is not None

    def wake_at(self, due_ms: int, now_ms: int) -> None:
        """Call the work at `due_ms` of the wall clock, which shows `now_ms`.

        The work is called after `LONGEST_SLEEP` already if that is earlier.
        """
        wait = (due_ms - now_ms) / 1000
        if wait >= LONGEST_SLEEP:  # each delayed message passes here: cheaper than min and max
            wait = LONGEST_SLEEP
        elif wait < 0.0:
            wait = 0.0
        self.wake_by(self._loop.time() + wait)

    def wake_after(self, wait: float) -> None:
        """Call the work after some seconds; with 0, once clients have been served."""
        self.wake_by(self._loop.time() + wait)

    def wake_by(self, moment: float) -> None:
        """Call the work at a time of the loop's clock. An earlier time that was set stays."""
        if moment < self._moment and self._open:
            if self._timer is not None:
                self._timer.cancel()
            self._moment = moment
            self._timer = self._loop.call_at(moment, self._run)

    def retry(self) -> None:
        """Call the work again because it failed."""
        self.wake_after(RETRY_AFTER)

    def stop(self) -> None:
        """Never call the work again."""
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        self._timer, self._moment = None, _NEVER
        try:
            self._work()
        except Exception:
            logger.exception("%s failed, retrying", self._name)
            self.retry()
