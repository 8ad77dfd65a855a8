"""A run: the sorted words of one stretch of the log, in memory first, then in a file of its own.

A file counts only once it is sealed: its words are on the device before its head is written, and
the head carries checksums of both. So a crash leaves whole runs, or files that are thrown away.
A run stays within 4 GiB of the log, whose upper half of positions it knows; words hold the lower.
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Union
from zlib import crc32

import msgspec

from pocketmq.store.disk import StoredFile

FOLDER = "keys"
REGION_BITS = 32
"""A run lies within one stretch of the log of this many bits of positions."""

Bounds = tuple[float, float]
"""From which word on, and before which one, the entries of a key stand."""

Words = Union[list[float], "memoryview[float]"]
"""Sorted."""

_MAGIC = b"mqkeys1\n"
_FIELDS = struct.Struct("=8sQQQqqIIBBxx")
_CRC = struct.Struct("=I")
HEAD_BYTES = 64
_CHECK_AT_ONCE = 1 << 20

assert _FIELDS.size + _CRC.size <= HEAD_BYTES


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run without looking at its words."""

    start: int
    end: int
    oldest_ms: int
    newest_ms: int
    time_ordered: bool
    """Whether store times never fall as positions rise, so that one can search by them."""
    merged: bool = False

    @property
    def name(self) -> str:
        """The name of its file: the stretch of the log it covers."""
        return f"{FOLDER}/{self.start:020d}-{self.end:020d}"

    @property
    def region(self) -> int:
        """What its words leave out of positions."""
        return self.start >> REGION_BITS << REGION_BITS


class KeyRun:
    """Words that can be searched. Belongs to the writer's thread."""

    __slots__ = ("_checked", "_crc", "crc", "file", "info", "words")

    def __init__(
        self, info: RunInfo, words: Words, crc: int = 0, file: StoredFile | None = None
    ) -> None:
        self.info = info
        self.words = words
        self.crc = crc
        self.file = file  # None while the words are only in memory
        self._crc = 0
        self._checked = 0

    def pack(self) -> None:
        """Hold words that are in a list as tightly as a file does, and know their checksum."""
        packed = self.packed
        self.words, self.crc = _words_in(memoryview(packed)), crc32(packed)

    @property
    def packed(self) -> bytes:
        """The words as a file holds them."""
        words = self.words
        # An array of a list or a view would read each of its words by itself.
        return words.tobytes() if isinstance(words, memoryview) else _pack(words)

    def settle(self, file: StoredFile) -> None:
        """Use the words of a file from now on, instead of those in memory."""
        self.words, self.file = words_of(file), file

    def check_more(self) -> bool | None:
        """Check a further part against the checksum: True when all is well, False for damage.

        None if it is not known yet.
        """
        raw = memoryview(b"") if self.file is None else self.file.view[HEAD_BYTES:]
        part = raw[self._checked : self._checked + _CHECK_AT_ONCE]
        self._crc = crc32(part, self._crc)
        self._checked += len(part)
        if self._checked < len(raw):
            return None
        return self._crc == self.crc

    def places(
        self, bounds: Bounds, begin_ms: int, end_ms: int, time_at: Callable[[int], int]
    ) -> Iterator[int]:
        """Return the positions of a key's entries, the highest first.

        Those stored outside of the times asked for may be among them. `time_at` returns when the
        record at a position was stored.
        """
        info, words = self.info, self.words
        if info.newest_ms < begin_ms or info.oldest_ms > end_ms:
            return
        low, high = bisect_left(words, bounds[0]), bisect_left(words, bounds[1])

        def time(index: int) -> int:
            return time_at(self._place(index))

        if info.time_ordered and high - low > 1:
            if info.newest_ms > end_ms:
                high = bisect_right(range(high), end_ms, low, high, key=time)
            if info.oldest_ms < begin_ms:
                low = bisect_left(range(high), begin_ms, low, high, key=time)
        for index in range(high - 1, low - 1, -1):
            yield self._place(index)

    def close(self) -> None:
        """Let go of the file."""
        if self.file is not None:
            self.words = []
            self.file.close()

    def _place(self, index: int) -> int:
        bits = int.from_bytes(array("d", (self.words[index],)).tobytes(), sys.byteorder)
        return self.info.region | bits & 0xFFFF_FFFF


def words_of(file: StoredFile) -> "memoryview[float]":
    """Return the words of a run's file."""
    return _words_in(file.view[HEAD_BYTES:].toreadonly())


def _words_in(raw: memoryview) -> "memoryview[float]":
    return raw.cast("d") if raw else memoryview(array("d"))  # nothing cannot be cast


def _pack(words: list[float]) -> bytes:
    return struct.pack(f"={len(words)}d", *words)


def pack_head(info: RunInfo, modulus: int, count: int, crc: int) -> bytes:
    """Return the bytes that seal a run's file."""
    fields = _FIELDS.pack(
        _MAGIC,
        info.start,
        info.end,
        count,
        info.oldest_ms,
        info.newest_ms,
        modulus,
        crc,
        info.time_ordered,
        info.merged,
    )
    return fields + _CRC.pack(crc32(fields))


def read_run(file: StoredFile, name: str, modulus: int) -> KeyRun | None:
    """Return the run in a file, or None if it is unsealed, damaged, or of another modulus."""
    view = file.view
    if len(view) < HEAD_BYTES:
        return None
    head = bytes(view[: _FIELDS.size])
    if _CRC.unpack_from(view, _FIELDS.size)[0] != crc32(head):
        return None
    magic, start, end, count, oldest, newest, found, crc, ordered, merged = _FIELDS.unpack(head)
    info = RunInfo(
        start=start,
        end=end,
        oldest_ms=oldest,
        newest_ms=newest,
        time_ordered=bool(ordered),
        merged=bool(merged),
    )
    if magic != _MAGIC or found != modulus or info.name != name:
        return None
    if len(view) != HEAD_BYTES + 8 * count:
        return None
    return KeyRun(info, words_of(file), crc, file)
