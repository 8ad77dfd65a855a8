"""Saving what a feature has done, a little later and off the loop, as a start for recovery.

What is saved refers to messages in the log, so the log is synced before it is saved: after a crash
nothing saved is ahead of the log. A save that fails is retried with the then current state.
Independent of what it saves. Belongs to the broker's loop.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol, TypeAlias

from pocketmq.broker.core.write_batch import WriteBatch
from pocketmq.errors import StoreError
from pocketmq.store import MessageStore

logger = logging.getLogger("pocketmq.broker")

SAVE_AFTER = 1.0
"""Seconds from a change until it is saved."""

Documents: TypeAlias = dict[str, bytes | None]
"""The documents to save by their names, None for those to delete."""
Snapshot: TypeAlias = Callable[[], bytes | Documents]
"""Returns what was captured: several documents, or the one that is named like its kind.

It is called on another thread, where time matters less.
"""
Outcome: TypeAlias = Callable[[Exception | None], None]
"""Called with None after a save, else with what went wrong."""


class LogOwner(Protocol):
    """What saving needs of a broker; `BrokerState` has it."""

    store: MessageStore
    batch: WriteBatch


def write_log(state: LogOwner) -> None:
    """Write what was appended in this event-loop iteration, before a save that may refer to it.

    Raises `StoreError`; the messages that the store dropped are refused when the batch ends.
    """
    try:
        state.store.write()
    except StoreError:
        state.batch.check_dropped()
        raise


def save_synced(store: MessageStore, save: Callable[[], None], done: Outcome) -> None:
    """Sync the log, then call `save`, both on the flusher's thread; then call `done` on the loop.

    Saves happen in the order of the calls. Without a sync nothing is saved.
    """

    def synced(error: Exception | None) -> None:
        if error is None:
            store.submit(save, done)
        else:
            done(error)

    store.request_sync(synced)


class LateSaving:
    """Documents of one kind that follow a feature's state."""

    def __init__(
        self,
        state: LogOwner,
        loop: asyncio.AbstractEventLoop,
        *,
        kind: str,
        capture: Callable[[], Snapshot],
        done: Outcome = lambda _: None,
    ) -> None:
        """Take what captures the state; `done` learns how the save of each capture ended."""
        self._state = state
        self._loop = loop
        self._kind = kind
        self._capture = capture
        self._done = done
        self._changed = False
        self._open = True
        self._timer: asyncio.TimerHandle | None = None
        self._saving: asyncio.Future[None] | None = None

    def changed(self) -> None:
        """Save soon."""
        self._changed = True
        if self._timer is None and self._saving is None and self._open:
            self._timer = self._loop.call_later(SAVE_AFTER, self._save)

    async def stop(self) -> None:
        """Save what has changed a last time."""
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._saving is not None:
            await self._saving
        if self._changed:
            self._save()
            if self._saving is not None:
                await self._saving

    def _save(self) -> None:
        self._timer = None
        self._changed = False
        try:
            # The order matters: what is captured must be in the log that is synced before it is
            # saved, or recovery would start behind the end of the log.
            write_log(self._state)
            snapshot = self._capture()
        except Exception:
            logger.exception("save failed: %s; retrying", self._kind)
            self.changed()
            return
        metadata, kind = self._state.store.metadata, self._kind

        def save() -> None:
            captured = snapshot()
            documents: Documents = {kind: captured} if isinstance(captured, bytes) else captured
            metadata.save_documents(kind, documents)

        self._saving = self._loop.create_future()
        save_synced(self._state.store, save, self._saved)

    def _saved(self, error: Exception | None) -> None:
        saving, self._saving = self._saving, None
        self._done(error)
        if error is not None:
            logger.error("save failed: %s: error=%s; retrying", self._kind, error)
            self._changed = True
        if self._changed:
            self.changed()
        if saving is not None and not saving.done():
            saving.set_result(None)
