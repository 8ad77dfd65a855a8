"""Recording how far the store is, so that recovery has less to walk over."""

import logging

from pocketmq.store.commit_log import CommitLog
from pocketmq.store.durability import Synced
from pocketmq.store.flusher import Flusher
from pocketmq.store.metadata import Checkpoint, Metadata
from pocketmq.store.queues import Queues

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
