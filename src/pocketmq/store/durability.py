"""When data is durable: flush policy, group commit, checkpoints, and the timer behind them.

A message passes three stages, all positions of the commit log:

- *appended* (`log.tail`): in memory only. Lost if the process ends.
- *written* (`log.written`): given to the operating system, once per event-loop iteration. Survives
  the end of the process (`kill -9`), not a power cut. Readers see written messages only.
- *synced* (`log.synced`): on the device. Survives a power cut.

The flush policy (`flushDiskType`) decides when a sender gets its answer:

- ASYNC_FLUSH (`StoreOptions.sync` off): once written. `Maintenance` syncs every `sync_interval`
  (half a second), so a power cut costs about as much.
- SYNC_FLUSH (`sync` on): once synced. `LogSync` is the group commit: one sync at a time, and all
  that ask while it runs share the next one. Which answers wait for it is decided in
  `broker.writing.log_writer`; meanwhile `broker.writing.synced_answers` holds them. A message with
  the property WAIT=false does not wait (`broker.sending.requests`). For a request that comes alone
  the writer's thread syncs by itself, as long as the device takes less time for it than a thread
  does to wake up.

A *checkpoint* records in SQLite how far the queues' indexes are, so that recovery reads the log
from there and not from its start. It syncs log and index files first: a checkpoint must never
describe anything that a power cut could still take away.

A sync that fails stops the store for good (`log.failed`): Linux marks the pages it could not write
as clean, so a second sync would succeed and prove nothing. Only a restart reads what is there.

Threads: everything here belongs to the writer's thread (the broker's loop), except the functions
named `job`, which run on the flusher's thread. A job works only on what was captured before; its
`outcome` runs on the writer's thread again.
"""

import logging
import time
from collections.abc import Callable

from pocketmq.errors import StoreError
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.disk import store_error
from pocketmq.store.flusher import Flusher, Outcome
from pocketmq.store.metadata import Checkpoint, Metadata
from pocketmq.store.options import StoreOptions
from pocketmq.store.queues import Queues

log = logging.getLogger("pocketmq.store")

Synced = Callable[[Exception | None], None]
"""Called with None once everything requested is durable, else with why that is uncertain."""

_TRIM_AT_ONCE = 50
_QUICK = 0.0002
"""Seconds that a sync may take on the writer's thread: about what handing it to another costs."""
_QUICK_ONES = 16
"""Quick syncs in a row after which the next one is expected to be quick."""


class LogSync:
    """Syncs the commit log: one sync for all that wait at the same time (group commit)."""

    def __init__(self, log: CommitLog, flusher: Flusher) -> None:
        self.busy = False
        self._log = log
        self._flusher = flusher
        self._waiters: list[Synced] = []
        self._quick = 0  # syncs in a row

    def request(self, synced: Synced) -> None:
        """Call back once everything written so far is on the device."""
        self._waiters.append(synced)
        if not self.busy:
            self._start()

    def request_if_needed(self) -> None:
        """Start a sync if anything is not on the device yet; no caller waits for it."""
        if self._log.written > self._log.synced and not self.busy:
            self._start()

    def submit_after(self, job: Callable[[], None], outcome: Outcome) -> None:
        """Run a job that saves what was derived from the log, once the log itself is synced.

        Else a power cut could leave an index of records that other records have replaced.
        """

        def synced(error: Exception | None) -> None:
            if error is not None:
                outcome(error)
            else:
                self._flusher.submit(job, outcome)

        self.request(synced)

    def sync_now(self) -> None:
        """Sync everything written while the caller waits; raises `StoreError`.

        A job of the flusher may have met an error of the device, which Linux reports only once:
        that is waited for.
        """
        error = self._flusher.wait()
        if isinstance(error, OSError):
            self._log.sync_failed(error)
        if self._log.failed is not None:
            raise self._log.failed
        files, position = self._log.unsynced()
        try:
            for file in files:
                file.sync()
        except OSError as error:
            self._log.sync_failed(error)
            raise store_error(error, 0) from error
        self._log.was_synced(position)

    def sync_if_quick(self) -> bool:
        """Sync everything written while the caller waits, if that is expected to be quick.

        Returns whether it was done; if it failed, `request` reports why. Not while the flusher has
        jobs: one could have met an error of the device, which Linux reports only once.
        """
        if self._quick < _QUICK_ONES or self.busy or not self._flusher.idle:
            return False
        began = time.perf_counter()
        try:
            self.sync_now()
        except StoreError:
            return False
        self._took(time.perf_counter() - began)
        return True

    def _took(self, seconds: float) -> None:
        self._quick = self._quick + 1 if seconds < _QUICK else 0

    def _start(self) -> None:
        waiters, self._waiters = self._waiters, []
        if self._log.failed is not None:
            _notify(waiters, self._log.failed)
            return
        self.busy = True
        files, position = self._log.unsynced()
        seconds = 0.0

        def job() -> None:
            nonlocal seconds
            began = time.perf_counter()
            for file in files:
                file.sync()
            seconds = time.perf_counter() - began

        def outcome(error: Exception | None) -> None:
            self.busy = False
            if error is None:
                self._took(seconds)
                self._log.was_synced(position)
            elif isinstance(error, OSError):
                self._log.sync_failed(error)
            # The next sync starts before callbacks run: the device must not idle meanwhile.
            if self._waiters:
                self._start()
            # A sync that succeeds after a failed one, such as a checkpoint's, proves nothing.
            _notify(waiters, self._log.failed or error)

        self._flusher.submit(job, outcome)


def _notify(waiters: list[Synced], error: Exception | None) -> None:
    for waiter in waiters:
        waiter(error)


class Checkpoints:
    """Records how far the store is, one checkpoint at a time."""

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
        """Bytes of the log that a recovery would have to read now."""
        return self._log.tail - self.position

    def start(self, finished: Synced | None = None) -> None:
        """Capture the state now and record it; everything appended must have been written."""
        if self._log.failed is not None:  # a successful sync would prove nothing
            if finished is not None:
                finished(self._log.failed)
            return
        # Capture everything in this one call, on the writer's thread: position, queues and extents
        # must belong together. What changes from here on is for the next checkpoint.
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
            for file in files:  # before the checkpoint that refers to their contents
                file.sync()
            self._metadata.save_checkpoint(state)

        def outcome(error: Exception | None) -> None:
            self.busy = False
            if error is None:
                self.position = position
                self._log.was_synced(position)
                queues.files.checkpointed(changes)
            else:
                log.error("checkpoint failed: %s; the next one includes it", error)
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


class Maintenance:
    """Does what is due: syncs, checkpoints, the next file, old index space. Called by a timer."""

    def __init__(
        self,
        options: StoreOptions,
        commit_log: CommitLog,
        queues: Queues,
        *,
        log_sync: LogSync,
        checkpoints: Checkpoints,
        checkpoint: Callable[[], object],
    ) -> None:
        self.options = options
        self._log = commit_log
        self._queues = queues
        self._log_sync = log_sync
        self._checkpoints = checkpoints
        self._checkpoint = checkpoint
        self._synced_at = self._checkpointed_at = 0.0
        self._logged = ""  # the last error logged

    def run(self, now: float) -> None:
        """Do what is due; see `MessageStore.maintain`."""
        options, checkpoints = self.options, self._checkpoints
        if not options.sync and now - self._synced_at >= options.sync_interval:
            self._synced_at = now
            self._log_sync.request_if_needed()
        due = now - self._checkpointed_at >= options.checkpoint_interval
        try:
            if (due and checkpoints.needed) or checkpoints.behind >= options.checkpoint_bytes:
                self._checkpointed_at = now
                self._checkpoint()
            self._queues.trim(_TRIM_AT_ONCE)
            self._log.prepare()
            self._logged = ""
        except StoreError as error:
            if str(error) != self._logged:  # not twice a second while the disk is full
                log.warning("store maintenance failed: %s; retrying", error)
            self._logged = str(error)
