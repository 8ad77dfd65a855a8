"""What a store needs now and then: syncs, checkpoints, the next file, old index space."""

import logging
from collections.abc import Callable

from pocketmq.errors import StoreError
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.durability import Checkpoints, LogSync
from pocketmq.store.options import StoreOptions
from pocketmq.store.queues import Queues

log = logging.getLogger("pocketmq.store")

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
