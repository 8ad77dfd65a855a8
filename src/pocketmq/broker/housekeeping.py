"""What a broker does by the clock: silent clients, offsets, the store's own upkeep, samples.

A few short timers; between them the broker sleeps. A chore that fails is logged and comes again.
"""

import asyncio
import logging
from collections.abc import Callable

from pocketmq.broker.dispatch import Dispatcher
from pocketmq.broker.handlers.membership import expire
from pocketmq.broker.state import BrokerState
from pocketmq.broker.traffic import SAMPLE_PERIOD

logger = logging.getLogger("pocketmq.broker")

EXPIRE_PERIOD = 10.0
MAINTAIN_PERIOD = 0.5


class Housekeeping:
    """The chores of one broker. Belongs to its loop."""

    def __init__(
        self, state: BrokerState, dispatcher: Dispatcher, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._state = state
        self._dispatcher = dispatcher
        self._loop = loop
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._saving = False

    def start(self) -> None:
        """Begin with the chores."""
        self._every(EXPIRE_PERIOD, "expire clients", lambda: expire(self._state))
        self._every(MAINTAIN_PERIOD, "maintain the store", self._maintain)
        self._every(
            self._state.config.flush_consumer_offset_interval / 1000, "save offsets", self._save
        )
        self._every(SAMPLE_PERIOD, "sample", self._sample)
        self._sample()

    async def stop(self) -> None:
        """Leave everything as it is."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _every(self, period: float, name: str, chore: Callable[[], None]) -> None:
        def run() -> None:
            self._timers[name] = self._loop.call_later(period, run)
            try:
                chore()
            except Exception:
                logger.exception("the broker could not %s", name)

        self._timers[name] = self._loop.call_later(period, run)

    def _maintain(self) -> None:
        self._dispatcher.end_turn()  # so that what the store does concerns nobody's answer
        self._state.store.maintain(self._loop.time())

    def _sample(self) -> None:
        self._state.traffic.sample(self._loop.time())

    def _save(self) -> None:
        """Save offsets on the flusher's thread; what cannot be saved comes again."""
        if self._saving:
            return
        offsets, store = self._state.offsets, self._state.store
        unsaved = offsets.take_unsaved()
        if not unsaved:
            return
        self._saving = True

        def saved(error: Exception | None) -> None:
            self._saving = False
            if error is not None:
                logger.error("offsets could not be saved: %s", error)
                offsets.not_saved(unsaved)

        store.submit(
            lambda: store.metadata.save_consumer_offsets(unsaved.rows, unsaved.gone), saved
        )
