"""Timed messages at work: one timer, set for the next message that is due.

Nothing is polled: without timed messages there is no timer at all. Only the clock is looked at now
and then while messages wait, because it may be set forward. Before a file of the log goes, what
still waits in it is moved to the end. Belongs to the broker's loop.
"""

import asyncio
import logging

from pocketmq.broker.appending import Draft
from pocketmq.broker.dispatch import Dispatcher
from pocketmq.broker.late_saving import LateSaving
from pocketmq.broker.state import BrokerState
from pocketmq.broker.timer_queue import KIND, TimerQueue
from pocketmq.broker.timer_rules import TIMED, TimerLimits, hold_back, timer_tag
from pocketmq.model.names import TIMER_TOPIC
from pocketmq.model.properties import REAL_TOPIC
from pocketmq.store import TagRule

logger = logging.getLogger("pocketmq.broker")

RETRY_AFTER = 1.0
"""Seconds until a delivery that failed is tried again."""
LONGEST_SLEEP = 5.0
"""Seconds after which the clock is looked at, while messages wait."""
NEVER = float("inf")
_MESSAGES = 256
_SIZE = 1 << 20
"""What is delivered before clients have their turn again."""
_TAKEN_AT_ONCE = 16_384
_BEHIND = 1024
"""New messages that are taken into the wheel together."""
_STALE = 64 << 20
"""Bytes of the log behind what was saved, from which it is saved anew: recovery walks over them."""


def timer_tag_rules() -> dict[str, TagRule]:
    """Give what a store must know to recover timed messages."""
    return {TIMER_TOPIC: timer_tag}


class Timers:
    """The timed messages of a running broker."""

    def __init__(
        self, state: BrokerState, dispatcher: Dispatcher, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._state = state
        self._dispatcher = dispatcher
        self._loop = loop
        self._queue = TimerQueue(state.store)
        self._saving = LateSaving(state.store, loop, kind=KIND, capture=self._queue.snapshot)
        self._open = False
        self._new = 0  # messages since the wheel took any in
        self._timer: asyncio.Handle | None = None
        self._timer_ms = NEVER  # when it goes off, by the broker's clock

    def start(self) -> None:
        """Go on where the broker stopped, and take timed messages from now on."""
        state = self._state
        documents = dict(state.store.metadata.documents(KIND))
        self._queue.recover(documents.get(KIND))
        if self._queue.wheel.count:
            logger.info("%d timed messages wait", self._queue.wheel.count)
            self._saving.changed()
        for name in TIMED:
            state.redirects[name] = self._hold_back
        state.store.about_to_drop.append(self._move_before)
        state.timed = self._queue
        self._open = True
        self._set_timer()

    async def stop(self) -> None:
        """Deliver no more, and save how far it came; call before the store is closed."""
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self._saving.stop()

    # Taking in

    def _hold_back(self, state: BrokerState, draft: Draft) -> None:
        config = state.config
        limits = TimerLimits(
            config.timer_wheel_enable, config.timer_max_delay_sec * 1000, config.broker_name
        )
        now_ms = state.turn.now_ms
        due_ms = hold_back(draft, limits, now_ms)
        if due_ms is None:
            return
        if state.measures is not None:
            topic = (draft.properties[REAL_TOPIC],)
            state.measures.timed_in.add(topic)
            state.measures.delay.add(topic, max(due_ms - draft.born_timestamp_ms, 0) // 1000)
        self._new += 1
        if self._new >= _BEHIND and not state.store.log.pending:
            self._new = 0
            self._queue.take_in(_TAKEN_AT_ONCE)
        if due_ms < self._timer_ms:
            if self._timer is None:
                self._saving.changed()  # what happened while nothing waited need not be walked over
            self._sleep(due_ms, now_ms)

    # Delivering

    def _set_timer(self) -> None:
        look_ms = self._queue.wheel.next_look_ms()
        if look_ms is not None:
            self._sleep(look_ms, self._state.clock.now_ms())

    def _sleep(self, until_ms: int, now_ms: int) -> None:
        """Look again at a moment, or earlier."""
        if not self._open:
            return
        if self._timer is not None:
            self._timer.cancel()
        wait = min((until_ms - now_ms) / 1000, LONGEST_SLEEP)
        self._timer_ms = now_ms + wait * 1000
        if wait <= 0:  # more is due: as soon as clients have had their turn
            self._timer = self._loop.call_later(0, self._run)
        else:
            self._timer = self._loop.call_later(wait, self._run)

    def _run(self) -> None:
        self._timer, self._timer_ms = None, NEVER
        now_ms = self._state.clock.now_ms()
        try:
            behind = self._deliver(now_ms)
        except Exception:
            logger.exception("timed messages could not be delivered")
            behind = None
        if behind is None:
            self._sleep(now_ms + int(RETRY_AFTER * 1000), now_ms)
        elif behind:
            self._sleep(now_ms, now_ms)
        else:
            self._set_timer()

    def _deliver(self, now_ms: int) -> bool | None:
        """Deliver a part of what is due; tell whether there is more to do, None if it failed."""
        queue, dispatcher, turn = self._queue, self._dispatcher, self._state.turn
        dispatcher.end_turn()  # if the store refuses, it shall be nobody else's message
        self._new = 0
        behind = queue.take_in(_TAKEN_AT_ONCE)
        behind |= queue.wheel.prepare(now_ms, _TAKEN_AT_ONCE)
        done = queue.done
        delivered = queue.deliver(now_ms, _MESSAGES, _SIZE)
        for target, (count, size) in delivered.by_queue.items():
            turn.appended(target, count, size)
            if self._state.measures is not None:
                self._state.measures.timed_out.add((target.topic,), count)
        dispatcher.end_turn()  # wakes the pulls that wait for them
        stale = self._state.store.log.written - queue.saved_position > _STALE
        if queue.done != done or delivered.by_queue or stale:
            self._saving.changed()
        if delivered.error is not None:
            logger.error("timed messages have to wait: %s", delivered.error)
            return None
        return behind

    # Making room

    def _move_before(self, position: int) -> None:
        if self._queue.wheel.count or self._new:
            self._dispatcher.end_turn()
            self._queue.move_before(position, self._state.clock.now_ms())
            self._saving.changed()
