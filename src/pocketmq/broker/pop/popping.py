"""Pops at work: one timer, set for the next message that comes back or the next who waited enough.

Without pops there is no timer at all (see `alarm`). Belongs to the broker's loop.
"""

import asyncio
import logging
from collections.abc import Callable

from pocketmq.broker.core.alarm import RETRY_AFTER, Alarm
from pocketmq.broker.core.late_saving import LateSaving
from pocketmq.broker.pop.keeping import recover, snapshot
from pocketmq.broker.pop.popping import revive
from pocketmq.broker.pop.pops import Pops
from pocketmq.broker.pop.shelf import Taken
from pocketmq.broker.saving import submit_offsets
from pocketmq.broker.state import BrokerState
from pocketmq.broker.writing.log_writer import CommitLogWriter
from pocketmq.errors import StoreError

logger = logging.getLogger("pocketmq.broker")

KIND = "pops"
_MESSAGES = 256
_SIZE = 1 << 20
"""What is brought back before clients have their turn again."""
_ENTRIES = 100_000
_SAVE_AFTER = 30.0
"""Entries of the journal, and seconds, after which everything is saved anew."""


class Popping:
    """The pops of a running broker."""

    def __init__(
        self, state: BrokerState, dispatcher: CommitLogWriter, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._state = state
        self._dispatcher = dispatcher
        self._loop = loop
        self._pops = Pops(state)
        self._saving = LateSaving(state, loop, kind=KIND, capture=self._capture)
        self._alarm = Alarm("redelivery of popped messages", self._run, loop)
        self._open = False
        self._save_timer: asyncio.TimerHandle | None = None
        self._unsaved = 0  # entries of the journal

    def start(self) -> None:
        """Go on where the broker stopped, and serve pops from now on."""
        state, pops = self._state, self._pops
        documents = dict(state.store.metadata.documents(KIND))
        now_ms = state.clock.now_ms()
        out = recover(pops.table.shelves, pops.journal, state.store, documents.get(KIND), now_ms)
        state.batch.notes += 1  # recovery may have noted something
        if out:
            logger.info("%d popped messages are not acknowledged", out)
            self._saving.changed()
        pops.wake_by = self._alarm.wake_by
        pops.sealed = self._sealed
        state.pops = pops
        self._open = True
        self._set_alarm()

    async def stop(self) -> None:
        """Bring nothing back any more, and save; call before the store is closed."""
        self._open = False
        self._alarm.stop()
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None
        if self._unsaved:
            self._saving.changed()
        await self._saving.stop()

    # The timer

    def _set_alarm(self) -> None:
        self._alarm.wake_by(self._pops.waiting.wake_at)
        due_ms = self._pops.table.deadlines.next_ms
        if due_ms is not None:
            self._alarm.wake_at(due_ms, self._state.clock.now_ms())

    def _run(self) -> None:
        self._state.batch.now_ms = self._state.clock.now_ms()
        self._pops.serve_due()
        self._bring_back()
        self._set_alarm()

    def _bring_back(self) -> None:
        """Bring back a part of what is due, and serve those who wait for a locked queue."""
        table, dispatcher, turn = self._pops.table, self._dispatcher, self._state.batch
        due = table.deadlines.take_due(turn.now_ms)
        if not due:
            return
        dispatcher.write_now()  # if the store refuses, it shall be nobody else's message
        messages, size, later_ms = _MESSAGES, _SIZE, turn.now_ms
        for thing in due:
            if not isinstance(thing, Taken):
                self._pops.unlocked(thing.topic, thing.group, thing.queue_id)
                continue
            if messages > 0 and size > 0:
                messages -= thing.left
                try:
                    size -= revive(self._state, self._pops, thing, _MESSAGES)
                except StoreError as error:
                    logger.error("popped messages have to stay out: %s", error)  # noqa: TRY400
                    turn.check_dropped()
                    messages, later_ms = 0, turn.now_ms + int(RETRY_AFTER * 1000)
            if thing.left:
                table.deadlines.add(thing, later_ms)
        dispatcher.write_now()  # wakes those who wait for them

    # Saving

    def _sealed(self, entries: int) -> None:
        before, self._unsaved = self._unsaved, self._unsaved + entries
        if not before and entries and self._open:
            self._set_timer_for_saving()
        elif before < _ENTRIES <= self._unsaved:
            self._saving.changed()
        due_ms = self._pops.table.deadlines.next_ms
        if due_ms is not None:
            self._alarm.wake_at(due_ms, self._state.batch.now_ms)

    def _set_timer_for_saving(self) -> None:
        if self._save_timer is not None:
            self._save_timer.cancel()
        self._save_timer = self._loop.call_later(_SAVE_AFTER, self._saving.changed)

    def _capture(self) -> Callable[[], bytes]:
        """Give everything as it is; offsets are saved before it, which it relies on."""
        self._unsaved = 0
        submit_offsets(self._state)
        return snapshot(self._pops.table.shelves, self._pops.journal)
