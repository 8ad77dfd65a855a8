"""Appending messages to queues: packed, indexed, and written once per event-loop iteration.

Until `write`, messages exist in memory only; if the system refuses them then, log and queues are
rolled back as if they had never been appended. Belongs to the writer's thread.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from pocketmq.errors import InvalidInput, StoreError
from pocketmq.protocol.batch_records import PackedBatch, columns, pack_batch
from pocketmq.protocol.inner_batch import WRAPPED, count_entries, with_base, with_number
from pocketmq.protocol.record_scan import SECTOR, checksum, looks_torn
from pocketmq.protocol.records import Record, RecordForm, pack_record, placed
from pocketmq.store.commit_log import CommitLog
from pocketmq.store.inner_batches import append_batch_entries
from pocketmq.store.queue_index import Index, QueueIndex

_TORN = "properties with a zero byte at their end cannot be stored"


ROOM = 120
"""Bytes of a record that are neither body, topic nor properties, at most."""


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Where messages went: the first one's queue offset and each one's position in the log."""

    queue_offset: int
    positions: Sequence[int]


Entry = tuple[QueueIndex, Record | bytes, int]
"""A message, its tag code, and the queue it goes to. Bytes are a record that is packed and checked,
except for its place; only a store with an IPv4 host takes those (see `records.placed`)."""


Mark = tuple[QueueIndex, RecordForm, bytes, int]
"""A record of the broker's own: its queue, its form, its body and what the index keeps with it."""


Run = tuple[QueueIndex, int, int, int, Any, Any, Any]
"""What a queue gets of records that are packed: the first one's offset, how many, their size;
then positions, tag codes and sizes, as columns of bytes, or as numbers for a single one."""


def _check(record: Record) -> None:
    text, crc = record.property_bytes, record.body_crc
    if text and (not text[-1] or len(text) > SECTOR) and looks_torn(text):
        raise InvalidInput(_TORN)
    if crc is not None and crc != checksum(record.body):
        raise InvalidInput("the body does not match its checksum")


class Appender:
    """The one writer of the log."""

    def __init__(self, log: CommitLog, index: Index, store_host: bytes) -> None:
        self._log = log
        self._index = index
        self._store_host = store_host
        self._unwritten: list[tuple[QueueIndex, int]] = []

    def append(
        self, queue: QueueIndex, records: Sequence[Record], tags: Sequence[int], now_ms: int
    ) -> Appended:
        """Add messages; see `MessageStore.append`."""
        for record in records:
            _check(record)
        if len(records) != 1:
            return self._append_packed(queue, self._packer(records, tags, now_ms))
        log, offset = self._log, queue.next_offset
        position = log.tail
        data = pack_record(records[0], offset, position, now_ms, self._store_host)
        size = len(data)
        if position + size > log.limit or log.failed is not None:
            position = self._make_room(size)
            data = pack_record(records[0], offset, position, now_ms, self._store_host)
        queue.append(position, size, tags[0])
        log.pending.append(data)
        log.tail = position + size
        self._unwritten.append((queue, offset))
        return Appended(offset, [position])

    def append_body(
        self, queue: QueueIndex, form: RecordForm, body: bytes, tag: int, now_ms: int
    ) -> None:
        """Add a record of the broker's own; see `MessageStore.append_body`."""
        log, offset = self._log, queue.next_offset
        position = log.tail
        data = form.pack(body, offset, position, now_ms)
        size = len(data)
        if position + size > log.limit or log.failed is not None:
            position = self._make_room(size)
            data = form.pack(body, offset, position, now_ms)
        queue.append(position, size, tag)
        log.pending.append(data)
        log.tail = position + size
        self._unwritten.append((queue, offset))

    def append_marked(self, entry: Entry | None, mark: Mark, now_ms: int) -> None:
        """Add a message and the record about it; see `MessageStore.append_marked`."""
        log, host = self._log, self._store_host
        marks, form, body, mark_tag = mark
        room = form.size + len(body)
        if entry is not None:
            record = entry[1]
            if isinstance(record, bytes):
                room += len(record)
            else:
                _check(record)
                room += ROOM + len(record.body) + len(record.topic) + len(record.property_bytes)
        if log.tail + room > log.limit or log.failed is not None:
            self._make_room(room)
        position, data, offset = log.tail, b"", 0
        if entry is not None:
            queue, record, tag = entry
            offset = queue.next_offset
            if isinstance(record, bytes):
                data = placed(record, offset, position, now_ms, host)
            else:
                data = pack_record(record, offset, position, now_ms, host)
            queue.append(position, len(data), tag)
            self._unwritten.append((queue, offset))
            position += len(data)
        packed = form.pack(body, marks.next_offset, position, now_ms)
        try:
            marks.append(position, len(packed), mark_tag)
        except StoreError:
            if entry is not None:
                self._unwritten.pop()
                entry[0].truncate(offset)
            raise
        self._unwritten.append((marks, marks.next_offset - 1))
        log.pending.append(data + packed)
        log.tail = position + len(packed)

    def append_batch(self, queue: QueueIndex, body: bytes, like: Record, now_ms: int) -> Appended:
        """Add the messages of a batch's body; see `MessageStore.append_batch`."""

        def pack(offset: int, position: int) -> PackedBatch:
            host = self._store_host
            return pack_batch(
                body, like, offset, position, store_timestamp_ms=now_ms, store_host=host
            )

        return self._append_packed(queue, pack)

    def append_inner(
        self, queue: QueueIndex, body: bytes, like: Record, tag: int, now_ms: int
    ) -> Appended:
        """Add a batch as one record; see `MessageStore.append_inner`."""
        count = count_entries(body)
        log, offset = self._log, queue.next_offset
        text = with_base(with_number(like.property_bytes, count), offset)
        flag = like.sys_flag | WRAPPED
        record = msgspec.structs.replace(like, body=body, property_bytes=text, sys_flag=flag)
        _check(record)
        position = log.tail
        data = pack_record(record, offset, position, now_ms, self._store_host)
        if position + len(data) > log.limit or log.failed is not None:
            position = self._make_room(len(data))
            data = pack_record(record, offset, position, now_ms, self._store_host)
        append_batch_entries(queue, count, position, len(data), tag)
        log.pending.append(data)
        log.tail = position + len(data)
        self._unwritten.append((queue, offset))
        return Appended(offset, [position])

    def append_packed(self, data: bytes, runs: Sequence[Run]) -> None:
        """Add records that are packed for the log's end; see `MessageStore.append_packed`."""
        log = self._log
        done: list[tuple[QueueIndex, int]] = []
        try:
            for queue, offset, count, _, positions, tags, sizes in runs:
                done.append((queue, offset))
                if isinstance(positions, int):
                    queue.append(positions, sizes, tags)
                else:
                    queue.append_columns(count, positions, tags, sizes)
        except StoreError:
            for queue, offset in reversed(done):
                queue.truncate(offset)
            raise
        log.pending.append(data)
        log.tail += len(data)
        self._unwritten += done

    def write(self) -> None:
        """Write everything appended to the files; see `MessageStore.write`."""
        if not self._unwritten:
            return
        unwritten, self._unwritten = self._unwritten, []
        try:
            self._log.write()
        except StoreError:
            for queue, offset in reversed(unwritten):
                if queue.number:
                    queue.truncate(offset)
            raise
        dirty = self._index.dirty
        for queue, _ in unwritten:
            if queue.number:
                dirty.add(queue)

    def _append_packed(
        self, queue: QueueIndex, pack: Callable[[int, int], PackedBatch]
    ) -> Appended:
        log, offset = self._log, queue.next_offset
        packed = pack(offset, log.tail)
        if packed.looks_torn:
            raise InvalidInput(_TORN)
        if log.tail + len(packed.data) > log.limit or log.failed is not None:
            packed = pack(offset, self._make_room(len(packed.data)))
        queue.append_many(packed.positions, packed.sizes, packed.tags)
        log.pending.append(packed.data)
        log.tail += len(packed.data)
        self._unwritten.append((queue, offset))
        return Appended(offset, packed.positions)

    def _packer(
        self, records: Sequence[Record], tags: Sequence[int], now_ms: int
    ) -> Callable[[int, int], PackedBatch]:
        def pack(offset: int, position: int) -> PackedBatch:
            pieces: list[bytes] = []
            positions: list[int] = []
            for number, record in enumerate(records, offset):
                piece = pack_record(record, number, position, now_ms, self._store_host)
                pieces.append(piece)
                positions.append(position)
                position += len(piece)
            return PackedBatch(b"".join(pieces), *columns(positions, map(len, pieces), tags))

        return pack

    def _make_room(self, size: int) -> int:
        """Continue in a new file; return its position."""
        if self._log.failed is not None:
            raise self._log.failed
        self.write()
        self._log.make_room(size)
        return self._log.tail
