"""Where everything lies in stored records: found and proved for many of them at once.

Lengths are checked before anything is read by them; a record that breaks the format raises
`MessageMalformed`. Inner batches are unwrapped here, one by one. Independent of columns.
"""

import struct
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from pocketmq.errors import MessageMalformed, MessagesCutShort
from pocketmq.model import MessageQueue, SysFlag
from pocketmq.model.property_names import KEYS, TAGS, UNIQUE_KEY
from pocketmq.protocol import DeliveryContext
from pocketmq.protocol.body_checksums import wrong_body
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.record_scan import MAGIC_V1, MAGIC_V2, scan_records
from pocketmq.spark.gathering import heads_at, numbers_at, pieces
from pocketmq.spark.split_columns import (
    ELSEWHERE,
    Asked,
    PropertyColumns,
    SplitColumns,
    split_columns,
)

EVERYTHING = Asked((TAGS, KEYS, UNIQUE_KEY), others=True)
_SMALLEST = 91
_INNER_BATCH = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
_BORN_V6 = int(SysFlag.BORN_HOST_V6)
_SIZE = struct.Struct(">i").unpack_from
_LONG = struct.Struct(">q").unpack_from
_RUN = 64
"""Records of one size in a row from which on checking them at once beats walking."""


class QueueRecords(msgspec.Struct, frozen=True):
    """Records of one queue, and the range of offsets that is wanted."""

    queue: MessageQueue
    records: bytes
    start: int
    end: int
    offset_delta: int = 0
    behind: int = -1
    """The offset after its last record."""


class Layout:
    """The records of some parts as rows: arrays of positions, one entry per row."""

    def __init__(self, parts: Sequence[QueueRecords], asked: Asked = EVERYTHING) -> None:
        """Locate all records. Raises `MessageMalformed`."""
        self.asked = asked
        """The properties that are needed."""
        self._join(parts)
        if self.count:
            self._measure()

    @property
    def has_batches(self) -> bool:
        """Whether some of the records are inner batches, which hold several messages."""
        return bool(((self.head["flags"] & _INNER_BATCH) == _INNER_BATCH).any())

    def _join(self, parts: Sequence[QueueRecords]) -> None:
        """Concatenate the records, and find the start of each."""
        found = [_starts(part.records) for part in parts]
        self.parts = parts
        self.counts = [len(at) for at in found]
        """Rows of each part."""
        if len(parts) == 1:
            self.data, self.at = parts[0].records, found[0]
        else:
            self.data = b"".join([part.records for part in parts])
            sizes = [len(part.records) for part in parts]
            shifts = np.cumsum([0, *sizes[:-1]])
            self.at = np.concatenate([at + by for at, by in zip(found, shifts, strict=True)])
        self.count = len(self.at)
        self.buffer = pa.py_buffer(self.data)
        self.head = heads_at(self.data, self.at)
        """The fields at fixed positions of each record."""

    def _measure(self) -> None:
        """Locate bodies and properties, and verify that all lengths fit.

        Everything after this reads positions without bounds checks, so a record that lies about a
        length must be refused here.
        """
        data, at = self.data, self.at
        ends = np.append(at[1:], len(data))
        flags = self.head["flags"].astype(np.int32)
        magic = self.head["magic"]
        hosts = (flags >> 4) & 3
        body_at = at + 88
        sizes = self.head["body_size"]
        self.v6 = bool(hosts.any())
        if self.v6:
            body_at += 12 * ((hosts & 1) + (hosts >> 1))
            if (body_at + 3 > ends).any():
                raise _malformed(data)
            sizes = numbers_at(data, ">i4", body_at - 4)
        body_end = body_at + sizes
        if (sizes < 0).any() or (body_end + 3 > ends).any():
            raise _malformed(data)
        topic_sizes = np.frombuffer(data, np.uint8)[body_end]
        text_at = body_end + 3 + topic_sizes
        long = magic != MAGIC_V1
        if long.any():
            if (magic[long] != MAGIC_V2).any() or (body_end[long] + 4 > ends[long]).any():
                raise _malformed(data)
            text_at[long] = body_end[long] + 4 + numbers_at(data, ">i2", body_end[long])
            topic_sizes = topic_sizes[~long]
        if (topic_sizes > 127).any() or (text_at > ends).any() or (text_at < body_end + 3).any():
            raise _malformed(data)
        if (numbers_at(data, ">i2", text_at - 2) != ends - text_at).any():
            raise _malformed(data)
        self.flags, self.ends = flags, ends
        self.body_at, self.body_end, self.text_at = body_at, body_end, text_at

    def check_bodies(self) -> None:
        """Verify the checksums of all bodies; raises `MessageMalformed`."""
        stored = numbers_at(self.data, ">i4", self.at + 8).astype(np.int64)
        wrong = wrong_body(
            self.data, self.body_at.tobytes(), self.body_end.tobytes(), stored.tobytes()
        )
        if wrong >= 0:
            raise MessageMalformed("a body does not match its checksum", int(self.at[wrong]))

    @cached_property
    def offsets(self) -> Any:
        """The rows' offsets in their queues."""
        stored = self.head["queue_offset"].astype(np.int64)
        if any(part.offset_delta for part in self.parts):
            stored += self.each([part.offset_delta for part in self.parts])
        return stored

    @cached_property
    def properties(self) -> PropertyColumns | SplitColumns:
        """The properties of all rows that are needed, parsed on first use."""
        split = split_columns(self.data, self.text_at, self.ends, self.asked, ELSEWHERE)
        if split is not None:
            return split
        return PropertyColumns(pieces(self.buffer, self.text_at, self.ends, pa.binary()))

    def each(self, of_parts: list[int]) -> Any:
        """Repeat each part's number for each of its rows; the number alone if there is one part."""
        if len(of_parts) == 1:
            return of_parts[0]
        return np.repeat(np.array(of_parts, np.int64), self.counts)

    def queue_of(self, row: int) -> MessageQueue:
        """Return the queue of a row."""
        return self.parts[int(np.searchsorted(np.cumsum(self.counts), row, "right"))].queue

    def born_host_size(self, row: int) -> int:
        """Return the size of the sender's address in bytes."""
        return 20 if self.flags[row] & _BORN_V6 else 8


def unwrapped(layout: Layout, limit: int) -> Iterator[Layout]:
    """Yield the layout itself, or that of its inner batches, `limit` inflated bytes at a time.

    Raises `MessageMalformed`, and `CodecMissing` for an inner batch.
    """
    if not layout.count:
        return
    if not layout.has_batches:
        yield layout
        return
    for part in layout.parts:
        for piece in _unwrapped(part, limit):
            yield Layout([piece], layout.asked)


def _starts(data: bytes) -> Any:
    """Return the start of each record; raises `MessageMalformed` if sizes do not fit.

    Runs of equal sizes, which are common, are found at once. Where sizes vary, records are walked
    one by one, in growing stretches before the next attempt to find a run.
    """
    found: list[Any] = []
    at, run, walk = 0, _RUN, _RUN
    while at < len(data):
        size, same = _run(data, at, run)
        if same >= _RUN or at + same * size == len(data):
            found.append(np.arange(at, at + same * size, size))
            at += same * size
            run, walk = 8 * run, _RUN
        else:
            starts, at = _walk(data, at, walk)
            found.append(starts)
            run, walk = _RUN, 4 * walk
    return np.concatenate(found) if found else np.array([], np.int64)


def _run(data: bytes, at: int, most: int) -> tuple[int, int]:
    """Return the size of a record, and the length of the run of that size that starts with it."""
    if len(data) - at < _SMALLEST:
        raise _malformed(data)
    (size,) = _SIZE(data, at)
    room = len(data) - at
    if not _SMALLEST <= size <= room:
        raise _malformed(data)
    sizes = np.ndarray((min(most, room // size),), ">i4", data, at, (size,))
    other = sizes != size
    return size, int(other.argmax()) if other.any() else len(sizes)


def _walk(data: bytes, at: int, most: int) -> tuple[Any, int]:
    """Return the starts of up to `most` records, and the end of the last."""
    found: list[int] = []
    add, size_at, last = found.append, _SIZE, len(data) - _SMALLEST
    while at <= last and len(found) < most:
        add(at)
        (size,) = size_at(data, at)
        if size < _SMALLEST:
            raise _malformed(data)
        at += size
    if at > len(data) or last < at < len(data):
        raise _malformed(data)
    return np.array(found, np.int64), at


def _malformed(data: bytes) -> MessageMalformed:
    """Return the exact reason, by a second, slower scan."""
    end = 0
    try:
        for position, size, *_ in scan_records(data):
            end = position + size
    except MessageMalformed as error:
        return error
    return MessageMalformed("a blank record, which only occurs in commit logs", end)


def _unwrapped(part: QueueRecords, limit: int) -> Iterator[QueueRecords]:
    """Yield the messages of inner batches as single records, `limit` inflated bytes at a time.

    Raises `MessageMalformed`, which names the offset, for a batch that alone is over the limit.
    """
    records, delivery = part.records, DeliveryContext(inflate_limit=limit)
    while records:
        try:
            found, records = decode_pulled(records, delivery), b""
        except MessagesCutShort as error:
            if not error.decoded and error.position + 28 > len(records):
                raise
            if not error.decoded:
                (offset,) = _LONG(records, error.position + 20)
                where = f"offset {offset + part.offset_delta} of {part.queue}"
                raise MessageMalformed(f"{where}: {error.reason}", error.position) from error
            found, records = error.decoded, records[error.position :]
        yield msgspec.structs.replace(part, records=b"".join([each.record() for each in found]))
