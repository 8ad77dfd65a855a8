"""Looking a key up in runs, and proving each find against the record itself.

The index only says where to look: hashes collide, and what it points to may be gone by now.
"""

import struct
from collections.abc import Callable, Iterable, Iterator

import msgspec

from pocketmq.protocol.property_text import find_property
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.key_index_run import KeyRun
from pocketmq.store.key_index_words import KeyHash
from pocketmq.store.log_scan import SegmentScan, Sound

MOST_BYTES = 8 << 20
"""An answer ends with the record that makes it larger than this: clients refuse huge frames."""

Wanted = Callable[[Sound], bool]
"""Tells whether a record that matches should be given."""

_FLAG: Callable[[memoryview, int], tuple[int]] = struct.Struct(">i").unpack_from
_TIME: Callable[[memoryview, int], tuple[int]] = struct.Struct(">q").unpack_from


class KeyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for: records of a topic with a key, stored between two moments (inclusive)."""

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
        """Give the newest records that match, at most `limit`, in the order of the log.

        That is what a Java broker gives: it takes the newest of a chain, then sorts by position.
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
        """Give where records may match, the newest first."""
        begin, end = self._query.begin_ms, self._query.end_ms
        last = -1
        for run in newest_first:
            for position in run.places(self._bounds, begin, end, self._store_time):
                if position != last:  # a key can be given twice
                    yield position
                last = position

    def _matching(self, position: int) -> Sound | None:
        """Give the record at a position if it is what was asked for."""
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
        """Give when a record was stored; -1 if it is no longer kept."""
        view = self._log.view(position, 76)
        if view is None:
            return -1
        return _TIME(view, 68 if _FLAG(view, 36)[0] & 0x10 else 56)[0]
