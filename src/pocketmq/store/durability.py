"""Bringing the commit log to the device: one sync for all who wait at the same time.
----
Recording how far the store is, so that recovery has less to walk over.
----
What a store needs now and then: syncs, checkpoints, the next file, old index space."""

import logging
from collections.abc import Callable

from pocketmq.errors import StoreError
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.flusher import Flusher
from pocketmq.store.metadata import Checkpoint, Metadata
from pocketmq.store.options import StoreOptions
from pocketmq.store.queues import Queues

Synced = Callable[[Exception | None], None]
"""Called with None once everything asked for is safe, else with why nobody knows."""


class LogSync:
    """Syncs the log through the flusher. Belongs to the writer's thread."""

    def __init__(self, log: CommitLog, flusher: Flusher) -> None:
        self.busy = False
        self._log = log
        self._flusher = flusher
        self._waiters: list[Synced] = []

    def request(self, synced: Synced) -> None:
        """Call back once everything written so far is on the device."""
        self._waiters.append(synced)
        if not self.busy:
            self._start()

    def request_if_needed(self) -> None:
        """Sync what is not on the device yet; nobody waits for it."""
        if self._log.written > self._log.synced and not self.busy:
            self._start()

    def _start(self) -> None:
        waiters, self._waiters = self._waiters, []
        if self._log.failed is not None:
            _tell(waiters, self._log.failed)
            return
        self.busy = True
        files, position = self._log.unsynced()

        def job() -> None:
            for file in files:
                file.sync()

        def outcome(error: Exception | None) -> None:
            self.busy = False
            if error is None:
                self._log.was_synced(position)
            elif isinstance(error, OSError):
                self._log.sync_failed(error)
            if self._waiters:
                self._start()
            _tell(waiters, (self._log.failed or error) if error else None)

        self._flusher.submit(job, outcome)


def _tell(waiters: list[Synced], error: Exception | None) -> None:
    for waiter in waiters:
        waiter(error)


log = logging.getLogger("pocketmq.store")


class Checkpoints:
    """Makes checkpoints, one at a time. Belongs to the writer's thread."""

    def __init__(
        self, commit_log: CommitLog, queues: Queues, metadata: Metadata, flusher: Flusher
    ) -> None:
        self.position = 0  # where recovery would begin
        self.busy = False
        self._log = commit_log
        self._queues = queues
        self._metadata = metadata
        self._flusher = flusher

    @property
    def needed(self) -> bool:
        """Whether anything has changed since the last one."""
        queues = self._queues
        changed = self._log.written > self.position or queues.index.dirty or queues.gone
        return bool(changed) and self._log.failed is None

    @property
    def behind(self) -> int:
        """Bytes a recovery would have to walk over now."""
        return self._log.tail - self.position

    def start(self, finished: Synced | None = None) -> None:
        """Capture the state now and record it; everything appended must have been written."""
        if self._log.failed is not None:  # a sync proves nothing any more
            if finished is not None:
                finished(self._log.failed)
            return
        queues, index = self._queues, self._queues.index
        logs, position = self._log.unsynced()
        changes = queues.files.take_changes()
        dirty, index.dirty = index.dirty, set()
        touched, index.touched = index.touched, set()
        gone, queues.gone = queues.gone, []
        for queue in dirty:
            touched |= queue.files_in_use()
        files = [*logs, *(queues.files.file(number).file for number in touched)]
        state = Checkpoint(
            position=position,
            next_number=queues.next_number,
            index_end=queues.files.end,
            log_first=self._log.deleted_until,
            queues=[(q.number, q.topic, q.queue_id, q.min_offset, q.next_offset) for q in dirty],
            gone_queues=gone,
            extents=[(*place, *row) for place, row in changes.rows.items()],
        )

        def job() -> None:
            for file in files:
                file.sync()
            self._metadata.save_checkpoint(state)

        def outcome(error: Exception | None) -> None:
            self.busy = False
            if error is None:
                self.position = position
                self._log.was_synced(position)
                queues.files.checkpointed(changes)
            else:
                log.error("checkpoint failed, the next one tries again: %s", error)
                if isinstance(error, OSError):
                    self._log.sync_failed(error)
                queues.files.put_back(changes)
                index.dirty |= {queue for queue in dirty if queue.number}
                index.touched |= touched
                queues.gone = gone + queues.gone
            if finished is not None:
                finished(error)

        self.busy = True
        self._flusher.submit(job, outcome)


_TRIM_AT_ONCE = 50


class Upkeep:
    """Decides what is due. Belongs to the writer's thread."""

    def __init__(
        self,
        options: StoreOptions,
        commit_log: CommitLog,
        queues: Queues,
        *,
        group_commit: LogSync,
        checkpoints: Checkpoints,
        checkpoint: Callable[[], object],
    ) -> None:
        self.options = options
        self._log = commit_log
        self._queues = queues
        self._group_commit = group_commit
        self._checkpoints = checkpoints
        self._checkpoint = checkpoint
        self._synced_at = self._checkpointed_at = 0.0
        self._complaint = ""  # the last one told

    def run(self, now: float) -> None:
        """Do what is due; see `MessageStore.maintain`."""
        options, checkpoints = self.options, self._checkpoints
        if not options.sync and now - self._synced_at >= options.sync_interval:
            self._synced_at = now
            self._group_commit.request_if_needed()
        due = now - self._checkpointed_at >= options.checkpoint_interval
        try:
            if (due and checkpoints.needed) or checkpoints.behind >= options.checkpoint_bytes:
                self._checkpointed_at = now
                self._checkpoint()
            self._queues.trim(_TRIM_AT_ONCE)
            self._log.prepare()
            self._complaint = ""
        except StoreError as error:
            if str(error) != self._complaint:  # not twice a second while the disk is full
                log.warning("the store cannot be looked after: %s", error)
            self._complaint = str(error)
