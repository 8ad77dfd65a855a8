"""Delay levels at work: one timer, set for the next message that is due.

Without delayed messages there is no timer at all, and a message that is due before the others sets
it anew (see `alarm`). Progress is saved a few seconds after it was made, once the delivered
messages are on the device; `delay_recovery` says what a crash before that does. Belongs to the
broker's loop.
"""

import asyncio
import logging
from collections.abc import Mapping

from pocketmq.broker.alarm import Alarm
from pocketmq.broker.appending import Draft
from pocketmq.broker.delay_progress import SavedProgress, encode_progress
from pocketmq.broker.delay_queues import Budget, DelayQueues
from pocketmq.broker.delay_recovery import recover_progress
from pocketmq.broker.delay_rules import DelayLevels, hold_back, tag_rule
from pocketmq.broker.dispatch import Dispatcher
from pocketmq.broker.state import BrokerState
from pocketmq.model.names import SCHEDULE_TOPIC
from pocketmq.model.properties import DELAY_LEVEL
from pocketmq.store import TagRule

logger = logging.getLogger("pocketmq.broker")

SAVE_AFTER = 1.0
"""Seconds from a delivery until progress is saved."""


def delay_tag_rules(message_delay_level: str) -> dict[str, TagRule]:
    """Give what a store must know to recover delayed messages. Raises `InvalidInput`."""
    return {SCHEDULE_TOPIC: tag_rule(DelayLevels.parse(message_delay_level))}


class Delays:
    """The delayed messages of a running broker."""

    def __init__(
        self,
        state: BrokerState,
        dispatcher: Dispatcher,
        loop: asyncio.AbstractEventLoop,
        *,
        budget: Budget = Budget(),  # noqa: B008 - a value
    ) -> None:
        """Take the levels from the state's settings; raise `InvalidInput` if they are none."""
        self._state = state
        self._dispatcher = dispatcher
        self._loop = loop
        self._budget = budget
        self._levels = DelayLevels.parse(state.config.message_delay_level)
        self._queues = DelayQueues(state.store, self._levels, state.delay_progress)
        self._alarm = Alarm("delivery of delayed messages", self._run, loop)
        self._open = False
        self._save_timer: asyncio.TimerHandle | None = None
        self._saving: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Go on where the broker stopped, and take delayed messages from now on."""
        state, now_ms = self._state, self._state.clock.now_ms()
        progress = state.delay_progress
        progress.load(state.store.metadata.documents(progress.kind), now_ms)
        recover_progress(state.store, progress, self._queues.levels, now_ms)
        state.redirects[DELAY_LEVEL] = self._hold_back
        self._open = True
        self._set_alarm()

    async def stop(self) -> None:
        """Deliver no more, and save how far it came; call before the store is closed."""
        self._open = False
        self._alarm.stop()
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None
        for _ in range(2):  # one may be under way that does not know the latest
            self._save()
            if self._saving is not None:
                await self._saving

    # Delivering

    def _hold_back(self, state: BrokerState, draft: Draft) -> None:
        if hold_back(draft, self._levels, state.turn.now_ms):
            due_ms = draft.tag
            if due_ms is not None:
                self._alarm.wake_at(due_ms, state.turn.now_ms)

    def _set_alarm(self) -> None:
        now_ms = self._state.clock.now_ms()
        due_ms = self._queues.next_due_ms(now_ms)
        if due_ms is not None:
            self._alarm.wake_at(due_ms, now_ms)

    def _run(self) -> None:
        if self._deliver():
            self._set_alarm()
        else:
            self._alarm.retry()

    def _deliver(self) -> bool:
        """Deliver a part of what is due; tell whether the store took it."""
        dispatcher, turn = self._dispatcher, self._state.turn
        dispatcher.end_turn()  # if the store refuses, it shall be nobody else's message
        delivered = self._queues.deliver(self._state.clock.now_ms(), self._budget)
        for queue, (count, size) in delivered.by_queue().items():
            turn.appended(queue, count, size)
        dispatcher.end_turn()  # wakes the pulls that wait for them
        if delivered.runs:
            self._save_later()
        if delivered.error is not None:
            logger.error("delayed messages have to wait: %s", delivered.error)
        return delivered.error is None

    # Saving

    def _save_later(self) -> None:
        if self._save_timer is None and self._open:
            self._save_timer = self._loop.call_later(SAVE_AFTER, self._save)

    def _save(self) -> None:
        """Save progress, after what it speaks of is on the device."""
        self._save_timer = None
        if self._saving is not None:
            self._save_later()
            return
        state = self._state
        changed = state.delay_progress.take_unsaved(state.store.log.written, state.clock.now_ms())
        if changed:
            self._saving = self._loop.create_future()
            state.store.request_sync(lambda error: self._synced(changed, error))

    def _synced(self, changed: Mapping[int, SavedProgress], error: Exception | None) -> None:
        if error is not None:
            self._saved(changed, error)
            return
        metadata, kind = self._state.store.metadata, self._state.delay_progress.kind
        self._state.store.submit(
            lambda: metadata.save_documents(kind, encode_progress(changed)),
            lambda failed: self._saved(changed, failed),
        )

    def _saved(self, changed: Mapping[int, SavedProgress], error: Exception | None) -> None:
        progress = self._state.delay_progress
        if error is None:
            progress.were_saved(changed)
        else:
            logger.error("progress of delayed messages could not be saved: %s", error)
            progress.not_saved(changed)
            self._save_later()
        saving, self._saving = self._saving, None
        if saving is not None and not saving.done():
            saving.set_result(None)
