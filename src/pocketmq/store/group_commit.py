"""Bringing the commit log to the device: one sync for all who wait at the same time."""

from collections.abc import Callable

from pocketmq.store.commit_log import CommitLog
from pocketmq.store.flusher import Flusher

Synced = Callable[[Exception | None], None]
"""Called with None once everything asked for is safe, else with why nobody knows."""


class GroupCommit:
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
