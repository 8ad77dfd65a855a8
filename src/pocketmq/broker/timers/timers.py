"""Timed messages at work: one timer, set for the next message that is due.

Without timed messages there is no timer at all (see `core.alarm`). Before a log file is
deleted, what still waits in it is moved to the end. Belongs to the broker's loop.
"""

import asyncio
import logging

from pocketmq.broker.core.alarm import Alarm
from pocketmq.broker.core.late_saving import LateSaving
from pocketmq.broker.state import BrokerState
from pocketmq.broker.timers.queue import KIND, TimerQueue
from pocketmq.broker.timers.rules import TIMED, TimerLimits, hold_back, timer_tag
from pocketmq.broker.writing.drafts import Draft
from pocketmq.model.names import TIMER_TOPIC
from pocketmq.model.property_names import REAL_TOPIC
from pocketmq.store import TagRule

logger = logging.getLogger("pocketmq.broker")

_MESSAGES = 256
_SIZE = 1 << 20
"""Limits of one delivery, after which clients are served again."""
_TAKEN_AT_ONCE = 16_384
_BEHIND = 1024
"""New messages that are taken into the wheel together."""
_STALE = 64 << 20
"""Bytes of the log behind what was saved, from which it is saved again: recovery reads them."""


def timer_tag_rules() -> dict[str, TagRule]:
    """Return what a store needs to recover timed messages."""
    return {TIMER_TOPIC: timer_tag}


class Timers:
    """The timed messages of a running broker."""

    def __init__(self, state: BrokerState, loop: asyncio.AbstractEventLoop) -> None:
        self._state = state
        self._queue = TimerQueue(state.store)
        self._saving = LateSaving(state, loop, kind=KIND, capture=self._queue.snapshot)
        self._alarm = Alarm("delivery of timed messages", self._run, loop)
        self._new = 0  # messages since the wheel took any in

    def start(self) -> None:
        """Resume where the broker stopped, and take timed messages from now on."""
        state = self._state
        documents = dict(state.store.metadata.documents(KIND))
        self._queue.recover(documents.get(KIND))
        if self._queue.wheel.count:
            logger.info("timed messages waiting: count=%d", self._queue.wheel.count)
            self._saving.changed()
        for name in TIMED:
            state.redirects[name] = self._hold_back
        state.store.about_to_drop.append(self._move_before)
        state.timed = self._queue
        self._set_alarm()

    async def stop(self) -> None:
        """Stop delivering, and save the progress; call before the store is closed."""
        self._alarm.stop()
        await self._saving.stop()

    # Taking in

    def _hold_back(self, draft: Draft) -> None:
        state = self._state
        config = state.config
        limits = TimerLimits(
            config.timer_wheel_enable, config.timer_max_delay_sec * 1000, config.broker_name
        )
        now_ms = state.batch.now_ms
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
        if not self._alarm.is_set:
            self._saving.changed()  # recovery need not read what happened while nothing waited
        self._alarm.wake_at(due_ms, now_ms)

    # Delivering

    def _set_alarm(self) -> None:
        look_ms = self._queue.wheel.next_look_ms()
        if look_ms is not None:
            self._alarm.wake_at(look_ms, self._state.clock.now_ms())

    def _run(self) -> None:
        behind = self._deliver(self._state.clock.now_ms())
        if behind is None:
            self._alarm.retry()
        elif behind:
            self._alarm.wake_after(0)
        else:
            self._set_alarm()

    def _deliver(self, now_ms: int) -> bool | None:
        """Deliver a part of what is due; return whether there is more to do, None if it failed."""
        queue, writer, batch = self._queue, self._state.writer, self._state.batch
        writer.write_now()  # a write that fails must not drop clients' messages
        self._new = 0
        behind = queue.take_in(_TAKEN_AT_ONCE)
        behind |= queue.wheel.prepare(now_ms, _TAKEN_AT_ONCE)
        done = queue.done
        delivered = queue.deliver(now_ms, _MESSAGES, _SIZE)
        for target, (count, size) in delivered.by_queue.items():
            batch.appended(target, count, size)
            if self._state.measures is not None:
                self._state.measures.timed_out.add((target.topic,), count)
        writer.write_now()  # wakes the pulls that wait for them
        stale = self._state.store.log.written - queue.saved_position > _STALE
        if queue.done != done or delivered.by_queue or stale:
            self._saving.changed()
        if delivered.error is not None:
            logger.error("delivery of timed messages failed: error=%s; retrying", delivered.error)
            return None
        return behind

    # Before a log file is deleted

    def _move_before(self, position: int) -> None:
        if self._queue.wheel.count or self._new:
            self._state.writer.write_now()
            self._queue.move_before(position, self._state.clock.now_ms())
            self._saving.changed()
