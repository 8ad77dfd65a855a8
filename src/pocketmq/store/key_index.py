"""Finding messages by key: an index made from the commit log, when there is time for it.

Appending does nothing for it. A query first indexes what was written since the last time, so it
sees everything; a timer calls `catch_up` in small slices, so that there is seldom much to do.
Whatever of the index is missing or damaged is made again from the log: losing it loses nothing.

The newest words wait in memory. Some tens of thousands become a sorted run in a file of its own,
and neighbouring runs are merged into larger ones. A query searches each run, the newest first, and
checks each hit against the record itself: hashes collide, and the record may be deleted by now.
"""

import secrets
import struct
from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from time import perf_counter

import msgspec

from pocketmq.protocol.property_text import find_property
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.disk import FileSystem
from pocketmq.store.key_index_files import RunFiles, Submit
from pocketmq.store.key_index_run import KeyRun
from pocketmq.store.key_index_runs import Runs
from pocketmq.store.key_index_stretch import LogStretch
from pocketmq.store.key_index_words import KeyHash, choose_modulus
from pocketmq.store.log_scan import SegmentScan, Sound
from pocketmq.store.metadata import Metadata

MOST_BYTES = 8 << 20
"""An answer ends with the record that makes it larger than this: clients refuse huge frames."""

Wanted = Callable[[Sound], bool]
"""Returns whether a record that matches should be returned."""

_FLAG: Callable[[memoryview, int], tuple[int]] = struct.Struct(">i").unpack_from
_TIME: Callable[[memoryview, int], tuple[int]] = struct.Struct(">q").unpack_from
RUN_WORDS = 1 << 17
RUN_RECORDS = 1 << 18
"""What ends a run: this number of words, or of records if few of them have keys."""
FAN = 16
"""How many runs are merged into one."""


class KeyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query: records of a topic with a key, stored between two times (inclusive)."""

    topic: str
    key: str
    limit: int
    begin_ms: int = 0
    end_ms: int = (1 << 63) - 1
    unique: bool = False
    """Whether the key is a message's own id (`UNIQ_KEY`), not also one of its `KEYS`."""


class Lookup:
    """One query on its way through the runs."""

    def __init__(self, commit_log: CommitLog, key_hash: KeyHash, query: KeyQuery) -> None:
        self._log = commit_log
        self._query = query
        # Java writes what UTF-8 cannot hold (half a surrogate pair) as a question mark.
        self._topic = query.topic.encode("utf-8", "replace")
        self._key = query.key.encode("utf-8", "replace")
        self._bounds = key_hash.bounds(self._topic, self._key)

    def run(self, newest_first: Iterable[KeyRun], wanted: Wanted | None) -> list[bytes]:
        """Return the newest records that match, at most `limit`, in the order of the log.

        That is what a Java broker returns: it takes the newest of a chain, then sorts by position.
        """
        found: list[bytes] = []
        size = 0
        if self._query.limit <= 0 or not self._key:
            return found
        for position in self._places(newest_first):
            record = self._matching(position)
            if record is None or (wanted is not None and not wanted(record)):
                continue
            data = self._log.view(position, record[1])
            assert data is not None
            found.append(bytes(data))
            size += len(data)
            if len(found) == self._query.limit or size > MOST_BYTES:
                break
        found.reverse()
        return found

    def _places(self, newest_first: Iterable[KeyRun]) -> Iterator[int]:
        """Return where records may match, the newest first."""
        begin, end = self._query.begin_ms, self._query.end_ms
        last = -1
        for run in newest_first:
            for position in run.places(self._bounds, begin, end, self._store_time):
                if position != last:  # a key can be given twice
                    yield position
                last = position

    def _matching(self, position: int) -> Sound | None:
        """Return the record at a position if it is what was asked for."""
        query = self._query
        segment = self._log.segments.at(position)
        if segment is None or position >= self._log.written:
            return None
        if not query.begin_ms <= self._store_time(position) <= query.end_ms:
            return None
        record = SegmentScan(segment, position).first()
        if record is None or record[5] != self._topic:
            return None
        if find_property(record[6], b"UNIQ_KEY") == self._key:
            return record
        if query.unique:
            return None
        keys = find_property(record[6], b"KEYS") or b""
        return record if self._key in keys.split(b" ") else None

    def _store_time(self, position: int) -> int:
        """Return when a record was stored; -1 if it is no longer kept."""
        view = self._log.view(position, 76)
        if view is None:
            return -1
        return _TIME(view, 68 if _FLAG(view, 36)[0] & 0x10 else 56)[0]


class KeyIndex:
    """Records by topic and key. Belongs to the writer's thread."""

    def __init__(
        self,
        disk: FileSystem,
        commit_log: CommitLog,
        submit: Submit,
        *,
        modulus: int,
        recovered_end: int,
        run_words: int = RUN_WORDS,
        fan: int = FAN,
    ) -> None:
        """Take up what an earlier time left, for a log that recovery found to end somewhere."""
        self._log = commit_log
        self._run_words = run_words
        self._hash = KeyHash(modulus)
        self._first = commit_log.first
        self._runs = Runs(RunFiles(disk, submit, modulus), fan, self._first, recovered_end)
        self._gaps: list[LogStretch] = []  # parts that no run covers
        covered = self._first
        for run in self._runs.all:
            if run.info.start > covered:
                self._gaps.append(LogStretch(self._hash, covered, run.info.start))
            covered = run.info.end
        self._newest = LogStretch(self._hash, covered)

    @property
    def behind(self) -> int:
        """Bytes of the log that were written and not taken in yet."""
        missing = sum((gap.stop or 0) - gap.position for gap in self._gaps)
        return missing + self._log.written - self._newest.position

    @property
    def newest_ms(self) -> int:
        """When the last record was stored that has been taken in; 0 if there is none."""
        runs = self._runs.all
        return max(0, runs[-1].info.newest_ms if runs else 0, self._newest.newest_ms)

    @property
    def position(self) -> int:
        """How far the log has been taken in."""
        return self._newest.position

    def find(self, query: KeyQuery, wanted: Wanted | None = None) -> list[bytes]:
        """Return the newest records that match, at most `limit`, in the order of the log.

        Those that `wanted` refuses do not count. Everything written is taken in first; see
        `catch_up` for doing that piece by piece.
        """
        self.catch_up()
        runs: list[KeyRun] = [self._newest.as_run(), *reversed(self._runs.all)]
        return Lookup(self._log, self._hash, query).run(runs, wanted)

    def catch_up(self, seconds: float | None = None) -> bool:
        """Index what was written, for about `seconds`; return whether that was all.

        Without `seconds` it continues to the end. Time that is left is used to tidy up: runs of an
        earlier time are checked, small ones merged.
        """
        deadline = None if seconds is None else perf_counter() + seconds
        self.trim()
        while self._advance():
            if deadline is not None and perf_counter() >= deadline:
                return self.behind == 0
        while deadline is not None and perf_counter() < deadline and self._tidy():
            pass
        return self.behind == 0

    def trim(self) -> None:
        """Forget what the log no longer keeps."""
        first = self._log.first
        if first == self._first:
            return
        self._first = first
        self._runs.drop_before(first)
        self._gaps = [
            gap if gap.position >= first else LogStretch(self._hash, first, gap.stop)
            for gap in self._gaps
            if gap.stop is not None and gap.stop > first
        ]
        if self._newest.position < first:
            self._newest = LogStretch(self._hash, first)

    def stop(self) -> None:
        """Begin nothing more that waits for the device; called before the flusher is closed."""
        self._runs.stop()

    def close(self) -> None:
        """Let go of the files; called after the flusher was closed."""
        self._runs.close()

    def _advance(self) -> bool:
        """Index a little of the oldest missing part; return whether there was anything."""
        stretch = self._gaps[0] if self._gaps else self._newest
        moved = stretch.advance(self._log)
        filled = stretch.stop is not None and (not moved or stretch.position >= stretch.stop)
        full = len(stretch.words) >= self._run_words or stretch.records >= RUN_RECORDS
        if filled or full or stretch.left_region:
            rest = LogStretch(self._hash, stretch.position, stretch.stop)
            if filled:
                self._gaps.pop(0)
            elif self._gaps:
                self._gaps[0] = rest
            else:
                self._newest = rest
            run = stretch.as_run()
            run.pack()
            self._runs.add(run)
        return moved or filled

    def _tidy(self) -> bool:
        more, damaged = self._runs.tidy()
        if damaged is not None:
            start = max(damaged.info.start, self._first)
            insort(
                self._gaps, LogStretch(self._hash, start, damaged.info.end), key=attrgetter("start")
            )
        return more


def open_keys(
    disk: FileSystem, log: CommitLog, metadata: Metadata, submit: Submit, *, recovered_end: int
) -> KeyIndex:
    """Return the key index of a store; its hash is chosen once, by chance: no peer knows it."""
    modulus = metadata.number("key_modulus")
    if modulus is None:
        modulus = choose_modulus(secrets.randbits)
        metadata.set_number("key_modulus", modulus)
    return KeyIndex(disk, log, submit, modulus=modulus, recovered_end=recovered_end)
