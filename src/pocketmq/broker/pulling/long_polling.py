"""Long polling: suspended pulls retried when messages arrive, time out, or lose their topic.

`requests` decides how long a pull is held, `suspended_pulls` which of them are resumed and when;
this carries it out and keeps the timer. Belongs
to the broker's loop.
"""

import asyncio
import logging
from collections.abc import Mapping

from pocketmq.broker.core.refusals import FAILED
from pocketmq.broker.pulling.requests import has_match, resume
from pocketmq.broker.pulling.suspended_pulls import NEVER, SuspendedPull
from pocketmq.broker.state import BrokerState
from pocketmq.errors import ResponseCode, StoreError
from pocketmq.store import QueueIndex

logger = logging.getLogger("pocketmq.broker")


class LongPolling:
    """Answers the suspended pulls of one broker."""

    def __init__(self, state: BrokerState, loop: asyncio.AbstractEventLoop) -> None:
        self._state = state
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = NEVER
        self._open = True
        state.writer.arrived.append(self.wake)

    def stop(self) -> None:
        """Answer all with what there is; from now on none waits."""
        self._open = False
        for pull in self._state.waiting.close():
            self._resume(pull)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def release_orphans(self) -> None:
        """Answer pulls that wait for a topic that was deleted: its queues never grow again."""
        state = self._state
        for queue in state.waiting.queues():
            if state.store.queue(queue.topic, queue.queue_id) is not queue:
                for pull in state.waiting.take_queue(queue):
                    self._resume(pull)

    def wake(self, arrivals: Mapping[QueueIndex, int]) -> None:
        """Retry pulls of queues that grew, each from an offset on; pops that wait as well."""
        state, now = self._state, self._loop.time()
        state.batch.now_ms = state.clock.now_ms()
        for queue, first in arrivals.items():
            tags = queue.tags(first, queue.next_offset - first)
            for pull in state.waiting.take_arrived(queue, tags, self._has_match, now):
                self._resume(pull)
            if state.pops is not None:
                state.pops.arrived(queue)
        self.set_timer()

    def set_timer(self) -> None:
        """Set the timer for the next suspended pull that is due."""
        wake_at = self._state.waiting.wake_at
        if wake_at < self._timer_at and self._open:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = wake_at
            self._timer = self._loop.call_at(wake_at, self._look)

    def _look(self) -> None:
        self._timer = None
        self._timer_at = NEVER
        self._state.batch.now_ms = self._state.clock.now_ms()
        for pull in self._state.waiting.take_due(self._loop.time()):
            self._resume(pull)
        self.set_timer()

    def _has_match(self, pull: SuspendedPull) -> bool:
        return has_match(self._state, pull)

    def _resume(self, pull: SuspendedPull) -> None:
        connection, measures = pull.connection, self._state.measures
        # Back-pressure: a client that does not read must not make answers pile up in memory. When
        # the broker stops, every pull is answered all the same.
        if connection.crowded and self._open:
            self._state.waiting.put_back(pull, self._loop.time())
            return
        if measures is not None:
            measures.began, measures.suspended = pull.since, True
        try:
            resume(self._state, pull)
        except Exception as error:
            if isinstance(error, StoreError):
                self._state.batch.check_dropped()
            address = connection.remote_address
            logger.exception("request failed: client=%s request=%r", address, pull.request)
            connection.write(pull.request.reply(ResponseCode.SYSTEM_ERROR, FAILED).encode())
        connection.flush()
