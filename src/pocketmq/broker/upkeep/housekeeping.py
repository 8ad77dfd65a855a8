"""Periodic tasks: silent clients, offsets, the store's own upkeep, samples.

A few short timers; between them the broker sleeps. A task that fails is logged and runs again.
One task notices that the wall clock was set: it compares it with the loop's own clock, which cannot
be set. A machine that was suspended looks the same: wall-clock time went on while the loop's stood
still.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from pocketmq.broker.members.requests import expire
from pocketmq.broker.saving import submit_offsets
from pocketmq.broker.state import BrokerState
from pocketmq.broker.statistics.counters import SAMPLE_PERIOD
from pocketmq.broker.upkeep.cleaning import clean_store
from pocketmq.net.clock import WallClock

logger = logging.getLogger("pocketmq.broker")


SMALLEST_JUMP = 3.0
"""Seconds from which a jump of the clock is logged."""


class ClockWatch:
    """Notices jumps of the wall clock. Belongs to the broker's loop."""

    def __init__(self, clock: WallClock, steady: Callable[[], float]) -> None:
        self._clock = clock
        self._steady = steady
        self._difference = self._compare()
        self.when_set_back: list[Callable[[], None]] = []
        """Called after the clock was set back: what ends by it would last too long."""

    def look(self) -> None:
        """Compare the clocks; call this about once a second."""
        before, difference = self._difference, self._compare()
        if difference is None:
            return
        self._difference = difference
        jump = 0.0 if before is None else difference - before
        if abs(jump) >= SMALLEST_JUMP:
            direction = "forward" if jump > 0 else "back"
            logger.warning(
                "system clock jumped %s: seconds=%+.1f; delays, timers and retention go by the "
                "new time",
                direction,
                jump,
            )
        if jump <= -SMALLEST_JUMP:
            for told in self.when_set_back:
                told()

    def _compare(self) -> float | None:
        """Return the difference of the clocks; None if the process was paused between the reads.

        Such a pause would look like a jump.
        """
        before = self._steady()
        difference = self._clock.now() - before
        return difference if self._steady() - before < SMALLEST_JUMP / 2 else None


EXPIRE_PERIOD = 10.0
MAINTAIN_PERIOD = 0.5
CLEAN_PERIOD = 10.0
CLOCK_PERIOD = 1.0
INDEX_SLICE = 0.002
"""Seconds the key index takes at once, about; waiting messages and requests come in between."""
INDEX_PAUSE = 0.004
INDEX_BUSY_PAUSE = 0.1
"""Seconds between, if messages came or went since."""


class Housekeeping:
    """The periodic tasks of one broker. Belongs to its loop."""

    def __init__(self, state: BrokerState, loop: asyncio.AbstractEventLoop) -> None:
        self._state = state
        self._loop = loop
        self._clock_watch = ClockWatch(state.clock, loop.time)
        self._clock_watch.when_set_back.append(self._set_back)
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._saving = False
        self._indexed = 0  # the key index has everything before this position of the log
        self._messages = 0
        self._catching_up: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the periodic tasks."""
        self._every(EXPIRE_PERIOD, "expire silent clients", lambda: expire(self._state))
        self._every(MAINTAIN_PERIOD, "maintain the store", self._maintain)
        self._every(
            self._state.config.flush_consumer_offset_interval / 1000, "save offsets", self._save
        )
        self._every(CLOCK_PERIOD, "watch the clock", self._clock_watch.look)
        self._every(CLEAN_PERIOD, "delete old messages", self._clean)
        self._every(SAMPLE_PERIOD, "sample", self._sample)
        self._sample()

    async def stop(self) -> None:
        """Cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        if self._catching_up is not None:
            self._catching_up.cancel()

    def _every(self, period: float, name: str, chore: Callable[[], None]) -> None:
        def run() -> None:
            self._timers[name] = self._loop.call_later(period, run)
            try:
                chore()
            except Exception:
                logger.exception("periodic task failed: %s; retrying at its next interval", name)

        self._timers[name] = self._loop.call_later(period, run)

    def _set_back(self) -> None:
        if self._state.pops is not None:
            self._state.pops.clock_was_set_back()

    def _maintain(self) -> None:
        self._state.writer.write_now()  # a store that fails here must not drop clients' messages
        store = self._state.store
        store.maintain(self._loop.time())
        if store.log.tail > self._indexed and self._catching_up is None:
            self._catch_up()

    def _catch_up(self) -> None:
        """Take messages into the key index, a little while others are served, more when idle."""
        self._catching_up = None
        store, traffic = self._state.store, self._state.traffic
        messages = traffic.messages_in + traffic.messages_out
        tail = store.log.tail
        if store.keys.catch_up(INDEX_SLICE):
            self._indexed = tail
            return
        pause = INDEX_BUSY_PAUSE if messages != self._messages else INDEX_PAUSE
        self._messages = messages
        self._catching_up = self._loop.call_later(pause, self._catch_up)

    def _clean(self) -> None:
        self._state.writer.write_now()
        clean_store(self._state)

    def _sample(self) -> None:
        now = self._loop.time()
        self._state.traffic.sample(now)
        self._state.traffic.see_day(time.localtime(self._state.clock.now()).tm_yday)
        self._state.stats.sample(now)

    def _save(self) -> None:
        """Save offsets on the flusher's thread; what cannot be saved is retried."""
        if not self._saving:
            self._saving = True
            if not submit_offsets(self._state, self._saved):
                self._saving = False

    def _saved(self, _: Exception | None) -> None:
        self._saving = False
