"""The commit log: every record of every queue, one after another, in the order they were appended.

One writer. Records are collected in `pending` and written together once per event-loop iteration;
see `durability` for what then survives what. A record never spans two files: the rest of a file
that is too short is marked blank, as in RocketMQ.
"""

from pocketmq.errors import StoreError, StoreFailed, StoreFull
from pocketmq.protocol.record_scan import BLANK_SIZE
from pocketmq.protocol.records import blank_record
from pocketmq.store.disk import FileSystem, StoredFile, store_error
from pocketmq.store.segments import Segment, Segments

TRUSTED_FOR = 600.0
"""Seconds for which a record that was written or checked is taken to be in memory still."""


_LARGE = 32 * 1024


class CommitLog:
    """Append-only records. Belongs to the writer's thread; the flusher's thread syncs the files."""

    def __init__(self, disk: FileSystem, segment_size: int) -> None:
        self.segments = Segments(disk, "commitlog", segment_size)
        self.pending: list[bytes] = []
        self.recent = 0  # this process wrote everything behind it a few minutes ago at most
        self.checked_in = 0  # counts the periods in which checked records are not checked again
        self.deleted_until = 0  # retention has deleted everything before, and nothing else has
        self.tail = 0  # where the next record goes
        self.written = 0  # everything before is in the files
        self.synced = 0  # everything before is on the device
        self.limit = 0  # no record may end behind this in the current file
        self.damaged: set[tuple[int, int]] = set()  # queue numbers and offsets of damaged records
        self.failed: StoreFailed | None = None  # a sync failed: what is on the device is unknown
        self._current: Segment | None = None
        self._segment_size = segment_size
        self._refusing = False
        self._aged_at = 0.0
        self._soon_old = 0  # what lies behind it was written in the current period
        self._soiled = 0  # bytes behind `written` that a failed write may have left

    @property
    def first(self) -> int:
        """The position of the oldest byte still kept."""
        return self.segments.first

    def begin(self, tail: int, synced: int) -> bool:
        """Continue at a position that recovery found; return whether anything was cut behind it."""
        cut = self.segments.drop_after(tail)
        self.tail = self.written = self.recent = self._soon_old = tail
        self.synced = synced
        self._current = self.segments.at(tail)
        self.limit = 0 if self._current is None else self._current.end - BLANK_SIZE
        return cut

    def make_room(self, size: int) -> None:
        """Continue in a new file, because `size` bytes do not fit into this one.

        What is pending must have been written. Raises `StoreFull` if there is no space for a file;
        nothing has changed then.
        """
        if self._refusing:
            raise StoreFull(size)
        assert not self.pending, "a blank would be written before the records in front of it"
        old = self._current
        self._put(b"" if old is None else blank_record(old.end - self.tail))
        new = self.segments.grow(size + BLANK_SIZE)
        self.tail = self.written = new.start
        self.limit = new.end - BLANK_SIZE
        self._current = new

    def refuse(self, refusing: bool) -> None:  # noqa: FBT001 - a state, set by what was measured
        """Refuse records because the disk is nearly full, or accept them again.

        A limit of 0 sends every record to `make_room`, so that the hot path has nothing to check.
        """
        self._refusing = refusing
        self.limit = 0 if refusing or self._current is None else self._current.end - BLANK_SIZE

    def write(self) -> None:
        """Put everything pending into the file; raise `StoreFull` or `StoreFailed` if that fails.

        What was pending is dropped then, and the log ends where it ended before.
        """
        if not self.pending:
            return
        pieces, self.pending = self.pending, []
        current = self._current
        try:
            if len(pieces) == 1 and current is not None and not self._soiled:
                try:
                    file = current.opened or current.file
                    file.write(self.written - current.start, pieces[0])
                except OSError as error:
                    raise self._torn(error, len(pieces[0])) from error
            else:
                self._put(*_grouped(pieces))
        except StoreError:
            self.tail = self.written
            raise
        self.written = self.tail

    def view(self, position: int, size: int) -> memoryview | None:
        """Return bytes of the log, or None if they are not (or no longer) kept."""
        segment = self.segments.at(position)
        if segment is None or position + size > segment.end:
            return None
        start = position - segment.start
        return segment.view[start : start + size]

    def unsynced(self) -> tuple[list[StoredFile], int]:
        """Return the files a flusher must sync, and how far the log is safe once it has."""
        if self.written <= self.synced:
            return [], self.written
        return [segment.file for segment in self.segments.from_position(self.synced)], self.written

    def was_synced(self, position: int) -> None:
        """Note that everything before a position is on the device."""
        if position > self.synced:
            for segment in self.segments.from_position(self.synced):
                if segment is not self._current:
                    segment.file.rest()
            self.synced = position

    def sync_failed(self, error: Exception) -> None:
        """Refuse records for good: Linux forgets which pages it could not write.

        A second sync would succeed and prove nothing; only a restart reads what is really there.
        """
        if self.failed is None:
            self.failed = StoreFailed(str(error))

    def age(self, now: float) -> None:
        """Let records be checked again that were written or checked some minutes before `now`."""
        if now - self._aged_at >= TRUSTED_FOR:
            self._aged_at = now
            self.recent, self._soon_old = self._soon_old, self.written
            self.checked_in += 1

    def prepare(self) -> None:
        """Make the next file ahead of time once the current one is three quarters full."""
        if self.limit and self.limit - self.tail < self._segment_size // 4:
            self.segments.prepare()

    def _put(self, *pieces: bytes) -> None:
        """Write at `written`, piece after piece.

        What a failed write left behind is wiped before anything else. Its remains must not
        survive behind a shorter record: recovery could take them for records.
        """
        size = len(pieces[0]) if len(pieces) == 1 else sum(map(len, pieces))
        if not size:
            return
        assert self._current is not None
        at = self.written - self._current.start
        try:
            if self._soiled:
                self._current.file.write(
                    at, bytes(min(self._soiled, self._current.end - self.written))
                )
                self._soiled = 0
            for piece in pieces:
                self._current.file.write(at, piece)
                at += len(piece)
        except OSError as error:
            raise self._torn(error, size) from error

    def _torn(self, error: OSError, size: int) -> StoreError:
        """Note what a failed write may have left behind; return the error for its caller."""
        self._soiled = max(self._soiled, size)
        return store_error(error, size)


def _grouped(pieces: list[bytes]) -> list[bytes]:
    """Join small pieces; a large one stays as it is, as copying it costs more than a write."""
    groups: list[bytes] = []
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) < _LARGE:
            small.append(piece)
            continue
        if small:
            groups.append(b"".join(small))
            small = []
        groups.append(piece)
    if small:
        groups.append(b"".join(small))
    return groups
