"""The store of one broker: append, read, search, sync. All access to its files goes through it.

Belongs to one thread (the broker's loop), except for jobs on the flusher's thread: syncs,
checkpoints, and what is submitted with `submit`. Their outcomes are reported on the owner's thread.
When data is durable: see `durability`.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path

import msgspec

from pocketmq.errors import InvalidInput, StoreError
from pocketmq.protocol.records import Record
from pocketmq.store.appending import Appended, Appender, Entry, Mark
from pocketmq.store.by_time import offset_by_time, store_time
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.directory import METADATA, Directory
from pocketmq.store.disk import Disk, FileSystem
from pocketmq.store.durability import Checkpoints, LogSync, Maintenance, Synced
from pocketmq.store.extents import ExtentFiles
from pocketmq.store.flusher import Flusher, Outcome
from pocketmq.store.inner_batches import Matches, place_of
from pocketmq.store.key_index import KeyIndex, KeyQuery, open_keys
from pocketmq.store.log_scan import Sound, record_bytes, walk_log
from pocketmq.store.metadata import LOG_FIRST, Metadata
from pocketmq.store.no_disk import NoDisk
from pocketmq.store.options import StoreOptions
from pocketmq.store.queue_index import QueueIndex
from pocketmq.store.queues import Queues
from pocketmq.store.reading import QueueRead, read_queue, record_of
from pocketmq.store.recovery import Recovered, TagRule, take_up
from pocketmq.store.retention import Deletion, Retention

_INDEXES = 64 << 20
"""Memory for indexes in a store without a disk, however little it keeps."""


class MessageStore:
    """Messages by queue and offset."""

    def __init__(
        self,
        disk: FileSystem,
        metadata: Metadata,
        options: StoreOptions,
        *,
        store_host: bytes,
        flusher: Flusher,
        directory: Directory | None = None,
    ) -> None:
        self.options = options
        self.disk = disk
        self.metadata = metadata
        self.log = CommitLog(disk, options.segment_size)
        self.queues = Queues(ExtentFiles(disk), metadata)
        self.recovered = Recovered(start=0, tail=0)
        self.about_to_drop: list[Callable[[int], None]] = []
        """Called with the position at which the log will begin, before its oldest file goes."""
        self.store_host = store_host
        self._appender = appender = Appender(self.log, self.queues.index, store_host)
        # What each request needs is the part's own function: another call around it would cost.
        self.queue = self.queues.get
        """Return a queue that has or had messages."""
        self.append_body = appender.append_body
        """Add a record of the broker's own to its queue; raises what `append` does."""
        self.append_packed = appender.append_packed
        """Add records that were packed and checked for the log's end, all of them or none.

        They fit into the current file (`log.tail`, `log.limit`), and `log.failed` is not set.
        Raises `StoreFull` if there is no room for their index.
        """
        self.write = appender.write
        """Hand everything appended over to the operating system.

        Raises `StoreFull` or `StoreFailed` if it refuses: then nothing of it has been appended.
        """
        self._directory = directory
        self._flusher = flusher
        self._log_sync = LogSync(self.log, flusher)
        self._checkpoints = Checkpoints(self.log, self.queues, metadata, flusher)
        self._maintenance = Maintenance(
            options,
            self.log,
            self.queues,
            log_sync=self._log_sync,
            checkpoints=self._checkpoints,
            checkpoint=self.checkpoint,
        )
        self._retention = Retention(options, disk, self.log, self._drop_oldest)
        self._keys: KeyIndex | None = None
        self._most_in_memory = options.retention_bytes

    @classmethod
    def open(
        cls,
        path: Path | None,
        options: StoreOptions | None = None,
        *,
        store_host: bytes = bytes(8),
        flusher: Flusher | None = None,
        disk: FileSystem | None = None,
        tag_rules: Mapping[str, TagRule] | None = None,
    ) -> "MessageStore":
        """Open a directory, or a store in memory for None, and recover what is in it.

        `tag_rules` name the topics whose index keeps something else than the hash of the tag.
        Raises `StoreInUse` if another broker has the directory, `StoreCorrupt` if it is not ours,
        newer than this program or damaged beyond repair, `StoreFull` or `StoreFailed` if the
        system refuses.
        """
        options = options or StoreOptions()
        flusher = flusher or Flusher()
        if path is None:
            kept = options.retention_bytes  # more in between: it deletes only now and then
            memory = NoDisk(2 * kept + _INDEXES if kept else 0)
            return cls(memory, Metadata(None), options, store_host=store_host, flusher=flusher)
        directory = Directory(path)
        try:
            metadata = Metadata(path / METADATA, may_be_new=not directory.has_log)
        except BaseException:
            directory.close()
            raise
        store = cls(
            disk or Disk(path, directory.verify),
            metadata,
            options,
            store_host=store_host,
            flusher=flusher,
            directory=directory,
        )
        try:
            store.recovered = take_up(store.log, store.queues, metadata, tag_rules or {})
            store._checkpoints.position = store.recovered.start
        except BaseException:
            store._release()
            raise
        return store

    @property
    def path(self) -> Path | None:
        """The directory with the files; None for a store in memory."""
        return None if self._directory is None else self._directory.path

    @property
    def in_memory(self) -> bool:
        """Whether there is no directory, and everything ends with the process."""
        return self._directory is None

    # Queues

    def make_queue(self, topic: str, queue_id: int) -> QueueIndex:
        """Return a queue, making it if it is new. The caller has checked that the topic has it.

        Raises `InvalidInput` for a topic that no record can hold.
        """
        if not topic or "\0" in topic:
            raise InvalidInput(f"the topic {topic!r} cannot be stored")
        return self.queues.make(topic, queue_id)

    def delete_topic(self, topic: str) -> None:
        """Forget a topic's queues for good; its records stay in the log until their file goes.

        Queues of it must be asked for again afterwards: they begin at 0 again.
        """
        self.write()
        self.queues.delete(topic, self.log.tail)

    # Messages

    def append(
        self, queue: QueueIndex, records: Sequence[Record], tags: Sequence[int], now_ms: int
    ) -> Appended:
        """Add messages with their tag codes to the end of a queue, all of them or none.

        They may be acknowledged after `write` (and, where asked for, a sync). Topic and queue id
        of the records are the queue's. Raises `StoreFull` if there is no room, `StoreFailed` after
        the device failed, and `InvalidInput` for what recovery would take for damage: a body
        without the checksum given with it, properties that look torn.
        """
        return self._appender.append(queue, records, tags, now_ms)

    def append_marked(self, entry: Entry | None, mark: Mark, now_ms: int) -> None:
        """Add a message, if there is one, and behind it a record of the broker's own about it.

        Both or none, and to one file of the log. A crash can still tear them apart, but only what
        came later is lost then. Raises what `append` does.
        """
        self._appender.append_marked(entry, mark, now_ms)

    def append_batch(self, queue: QueueIndex, body: bytes, like: Record, now_ms: int) -> Appended:
        """Add the messages of a SEND_BATCH_MESSAGE body, all of them or none.

        Everything but body, properties and flag is as in `like`. Raises what `append` does, and
        `MessageMalformed` for a body that cannot be read.
        """
        return self._appender.append_batch(queue, body, like, now_ms)

    def append_inner(
        self, queue: QueueIndex, body: bytes, like: Record, tag: int, now_ms: int
    ) -> Appended:
        """Add a SEND_BATCH_MESSAGE body as one record, an inner batch, that takes its range.

        All else is as in `like`; the numbers of an inner batch are added to its properties. There
        is one position, whatever the number of messages. Raises what `append_batch` does, and
        `InvalidInput` for more messages than an inner batch can hold.
        """
        return self._appender.append_inner(queue, body, like, tag, now_ms)

    def read(
        self,
        queue: QueueIndex | None,
        offset: int,
        max_count: int,
        max_bytes: int,
        matches: Matches | None = None,
        *,
        tags: AbstractSet[int] | None = None,
        joined: bool = False,
    ) -> QueueRead:
        """Read a queue from an offset on; see `read_queue`. Only what was written can be read."""
        if self.log.pending:
            self.write()
        return read_queue(
            self.log,
            queue,
            offset,
            max_count=max_count,
            max_bytes=max_bytes,
            matches=matches,
            tags=tags,
            joined=joined,
        )

    def record_at(self, position: int) -> bytes | None:
        """Return the record that begins at a position of the log, if one does."""
        if position >= self.log.written:
            self.write()
        return record_bytes(self.log.segments, position)

    def record_of(self, queue: QueueIndex, offset: int, position: int) -> bytes | None:
        """Return the record of a queue's message if it begins at a position of the log.

        None if the index says otherwise, or the record is damaged.
        """
        if position >= self.log.written:
            self.write()
        return record_of(self.log, queue, offset, position)

    def place_of(self, queue: QueueIndex, offset: int) -> int | None:
        """Return a byte of the log that is one message's alone: its record's first, mostly.

        A message of an inner batch has the byte of the record by its number in the batch, of which
        there are always enough. None if the message is not there.
        """
        return place_of(self.log, queue, offset)

    def walk(self, start: int, limit: int) -> tuple[list[Sound], int]:
        """Return up to `limit` sound records of the log from a position on, and the next position.

        The position must be one that was returned, or 0. The same position again means that there
        are no more yet.
        """
        self.write()
        return walk_log(self.log.segments, start, self.log.tail, limit)

    def store_time(self, queue: QueueIndex, offset: int) -> int:
        """Return when a message was stored, in milliseconds; -1 if it is not there."""
        self.write()
        return store_time(self.log, queue, offset)

    def earliest_time(self, queue: QueueIndex) -> int:
        """Return when the oldest message still kept was stored; -1 if there is none."""
        return self.store_time(queue, queue.min_offset)

    def offset_by_time(self, queue: QueueIndex, time_ms: int, *, upper: bool = False) -> int:
        """Find a message by the time it was stored; see `by_time.offset_by_time`."""
        self.write()
        return offset_by_time(self.log, queue, time_ms, upper=upper)

    # Keys

    @property
    def keys(self) -> KeyIndex:
        """The key index; a timer should let it `catch_up` when there is little else to do."""
        if self._keys is None:
            submit, tail = self._log_sync.submit_after, self.recovered.tail
            self._keys = open_keys(self.disk, self.log, self.metadata, submit, recovered_end=tail)
        return self._keys

    def find_by_key(
        self, topic: str, key: str, begin_ms: int, end_ms: int, limit: int, *, unique: bool = False
    ) -> list[bytes]:
        """Return the newest messages with a key, in the order of the log; see `KeyQuery`.

        It sees everything appended, and nothing of a topic that was deleted. After much was
        appended it can take long: a caller that must not block calls `keys.catch_up` in slices
        before.
        """
        self.write()
        query = KeyQuery(
            topic=topic, key=key, begin_ms=begin_ms, end_ms=end_ms, limit=limit, unique=unique
        )
        return self.keys.find(query, self.queues.keep)

    # Safety

    @property
    def synced(self) -> int:
        """The position of the log up to which everything survives a power cut."""
        return self.log.synced

    def request_sync(self, synced: Synced) -> None:
        """Call back once everything written so far is on the device; callers share syncs."""
        self._log_sync.request(synced)

    def sync_if_quick(self) -> bool:
        """Sync everything written while the caller waits, if that takes no time to speak of.

        Returns whether it was done.
        """
        return self._log_sync.sync_if_quick()

    def sync_now(self) -> None:
        """Sync everything to the device while the caller waits; raises `StoreError`.

        Only for what must be durable before something else is destroyed.
        """
        self.write()
        self._log_sync.sync_now()

    def checkpoint(self, finished: Synced | None = None) -> bool:
        """Record how far the store is, so that recovery has less to do.

        Returns whether it was started: not while another one runs.
        """
        if self._checkpoints.busy:
            return False
        self.write()
        self._checkpoints.start(finished)
        return True

    @property
    def since_checkpoint(self) -> int:
        """Bytes of the log that a recovery would have to read now."""
        return self._checkpoints.behind

    def maintain(self, now: float) -> None:
        """Do what is due: sync, checkpoint, the next file, old index space. Called by a timer.

        `now` only ever grows; where it begins does not matter.
        """
        if self._directory is not None:
            if self.log.failed is None:
                self.log.failed = self._directory.failure()
            self.log.age(now)
        self._maintenance.run(now)

    def submit(self, job: Callable[[], None], outcome: Outcome) -> None:
        """Run a job that waits for the device on the flusher's thread, e.g. saving metadata."""
        self._flusher.submit(job, outcome)

    def drop_first_segment(self) -> bool:
        """Delete the oldest file of the log; return whether that was possible.

        It is not for the file in use, and not before a checkpoint has left the file behind.
        """
        oldest = self.log.segments.oldest
        if oldest is None or len(self.log.segments) < 2 or oldest.end > self._checkpoints.position:
            return False
        for notify in self.about_to_drop:
            notify(oldest.end)
        # Recorded before the file is deleted: after a crash in between, the next cleaning deletes
        # it. The other way round, the next start would report a missing file as lost messages.
        self.log.deleted_until = oldest.end
        if not self.in_memory:
            with suppress(StoreError):  # a full disk cannot record it, and needs the space
                self.metadata.set_number(LOG_FIRST, oldest.end)
        self.log.segments.drop_first()
        self.queues.log_was_cut(self.log.first)
        return True

    def clean(self, now_ms: int, *, asked: bool = False) -> list[Deletion]:
        """Delete old files, and refuse messages while the disk is nearly full; see `retention`.

        Returns what was deleted. `asked` is for an operator who does not want to wait for the hour.
        """
        dropped = self._retention.clean(now_ms, asked=asked)
        if dropped and self._keys is not None:
            self._keys.trim()
        return dropped

    def keep(self, options: StoreOptions) -> None:
        """Change what is kept and how often it is synced; sizes stay as they were opened with.

        A store in memory never keeps more than it was opened for.
        """
        if self.in_memory and self.options.retention_bytes:
            wanted = options.retention_bytes or self.options.retention_bytes
            most = min(wanted, self._most_in_memory)
            options = msgspec.structs.replace(options, retention_bytes=most)
        self.options = self._retention.options = self._maintenance.options = options

    def close(self) -> None:
        """Write, sync and checkpoint everything, then close the files.

        Raises what the last write or checkpoint raised, after everything was closed.
        """
        errors: list[Exception | None] = []
        try:
            self.write()
        except StoreError as error:
            errors.append(error)
        # The order: no new jobs of the key index, then all jobs end and report, then the last
        # checkpoint, which runs here, since a closed flusher has no thread. Files are closed last:
        # any of these may still write to them.
        if self._keys is not None:
            self._keys.stop()
        try:
            self._flusher.close()
            if self._checkpoints.needed:
                self._checkpoints.start(errors.append)
        finally:
            self._release()
        for failed in errors:
            if failed is not None:
                raise failed

    # Inside

    def _drop_oldest(self) -> bool:
        return self.drop_first_segment() or (self.checkpoint() and self.drop_first_segment())

    def _release(self) -> None:
        if self._keys is not None:
            self._keys.close()
        self.log.segments.close()
        self.queues.files.close()
        self.metadata.close()
        if self._directory is not None:
            self._directory.close()
