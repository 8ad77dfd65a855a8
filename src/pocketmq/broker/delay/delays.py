"""Delay levels at work: one timer, set for the next message that is due.

Without delayed messages there is no timer at all, and a message that is due before the others sets
it again (see `core.alarm`). Progress is saved a few seconds after it was made, once the delivered
messages are on the device; `delay.progress` handles a crash before that. Belongs to the broker's
loop.
"""

import asyncio
import logging

from pocketmq.broker.core.alarm import Alarm
from pocketmq.broker.core.late_saving import LateSaving, Snapshot
from pocketmq.broker.delay.delivery import DelayQueues, DeliveryBudget
from pocketmq.broker.delay.progress import SavedProgress, encode_progress, recover_progress
from pocketmq.broker.delay.rules import DelayLevels, hold_back, tag_rule
from pocketmq.broker.state import BrokerState, Handler
from pocketmq.broker.writing.drafts import DelayedSends, Draft
from pocketmq.errors import ResponseCode
from pocketmq.model.names import SCHEDULE_TOPIC
from pocketmq.model.property_names import DELAY_LEVEL
from pocketmq.net import Connection
from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.store import TagRule

logger = logging.getLogger("pocketmq.broker")


def delay_tag_rules(message_delay_level: str) -> dict[str, TagRule]:
    """Return what a store needs to recover delayed messages. Raises `InvalidInput`."""
    return {SCHEDULE_TOPIC: tag_rule(DelayLevels.parse(message_delay_level))}


class Delays:
    """The delayed messages of a running broker."""

    def __init__(
        self,
        state: BrokerState,
        loop: asyncio.AbstractEventLoop,
        *,
        budget: DeliveryBudget = DeliveryBudget(),  # noqa: B008 - a value
    ) -> None:
        """Take the levels from the state's settings; raise `InvalidInput` if they are malformed."""
        self._state = state
        self._budget = budget
        self._levels = DelayLevels.parse(state.config.message_delay_level)
        self._queues = DelayQueues(state.store, self._levels, state.delay_progress)
        self._alarm = Alarm("delivery of delayed messages", self._run, loop)
        self._captured: dict[int, SavedProgress] = {}  # what is being saved
        self._saving = LateSaving(
            state,
            loop,
            kind=state.delay_progress.kind,
            capture=self._capture,
            done=self._saved,
        )

    def start(self) -> None:
        """Resume where the broker stopped, and take delayed messages from now on."""
        state, now_ms = self._state, self._state.clock.now_ms()
        progress = state.delay_progress
        progress.load(state.store.metadata.documents(progress.kind), now_ms)
        recover_progress(state.store, progress, self._queues.levels, now_ms)
        state.redirects[DELAY_LEVEL] = self._hold_back
        state.delayed = DelayedSends(self._levels.delays_ms, self._alarm.wake_at)
        self._set_alarm()

    async def stop(self) -> None:
        """Stop delivering, and save the progress; call before the store is closed."""
        self._alarm.stop()
        if self._state.delay_progress.has_unsaved:  # recovery may have moved it
            self._saving.changed()
        await self._saving.stop()

    # Delivering

    def _hold_back(self, draft: Draft) -> None:
        now_ms = self._state.batch.now_ms
        if hold_back(draft, self._levels, now_ms):
            due_ms = draft.tag
            if due_ms is not None:
                self._alarm.wake_at(due_ms, now_ms)

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
        """Deliver a part of what is due; return whether the store took it."""
        writer, batch = self._state.writer, self._state.batch
        writer.write_now()  # a write that fails must not drop clients' messages
        delivered = self._queues.deliver(self._state.clock.now_ms(), self._budget)
        for queue, (count, size) in delivered.by_queue().items():
            batch.appended(queue, count, size)
        writer.write_now()  # wakes the pulls that wait for them
        if delivered.runs:
            self._saving.changed()
        if delivered.error is not None:
            logger.error("delivery of delayed messages failed: error=%s; retrying", delivered.error)
        return delivered.error is None

    # Saving

    def _capture(self) -> Snapshot:
        state = self._state
        progress, end = state.delay_progress, state.store.log.written
        changed = self._captured = progress.take_unsaved(end, state.clock.now_ms())
        return lambda: encode_progress(changed)

    def _saved(self, error: Exception | None) -> None:
        progress = self._state.delay_progress
        if error is None:
            progress.were_saved(self._captured)
        else:
            progress.not_saved(self._captured)


def get_offsets(state: BrokerState, _: Connection, request: Command) -> Command:
    """Return the next offset of every level that was ever used."""
    body = encode_body(state.delay_progress.table(), bare_integer_keys=True)  # as fastjson does
    return request.reply(ResponseCode.SUCCESS, None, None, body)


HANDLERS: dict[RequestCode, Handler] = {RequestCode.GET_ALL_DELAY_OFFSET: get_offsets}
