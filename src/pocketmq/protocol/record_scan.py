"""Stored messages in place: finding them in a buffer, and reading their fields without copies.

A record has the same bytes in a commit log and in the body of a pull reply. Here records are only
found and looked at; `records` makes them. Sizes are checked before anything is taken from them,
so that no length a peer writes decides how much is allocated.
"""

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from pocketmq.errors import MessageMalformed
from pocketmq.model.java_strings import java_hash
from pocketmq.protocol.property_text import find_property

MAGIC_V1 = -626843481  # one byte for the topic's length
MAGIC_V2 = -626843477  # two bytes; RocketMQ 5.x writes it for topics longer than 127 bytes
MAGIC_BLANK = -875286124  # the unused end of a commit-log file
BLANK_SIZE = 8
SECTOR = 512
"""Bytes that a disk writes as a whole, at least."""

ReadableBuffer = bytes | bytearray | memoryview

_SMALLEST = 91
# A record's body lies behind 88 bytes, and 12 more for each IPv6 host (system flag bits 4 and 5).
BODY_AT = (88, 100, 100, 112)
FLAG_BYTE = 39
"""Where the lowest byte of the system flag is."""

_Unpack = Callable[[ReadableBuffer, int], tuple[int]]
_INT: _Unpack = struct.Struct(">i").unpack_from
_LONG: _Unpack = struct.Struct(">q").unpack_from
_SHORT: _Unpack = struct.Struct(">h").unpack_from
_SIZE_AND_MAGIC = struct.Struct(">ii").unpack_from
_COMMON_HEAD = struct.Struct(">ii12xq8xi44xi").unpack_from

Found = tuple[int, int, int, int, int, int]
"""A record's position, size, queue offset, system flag, body size, and where its properties are."""


def scan_records(buffer: ReadableBuffer, start: int = 0, end: int | None = None) -> Iterator[Found]:
    """Walk over the records from `start` to `end`, and prove that each one's lengths fit.

    A blank record is the end of a commit-log file: the walk stops before it. Raises
    `MessageMalformed` with the position of the first record that is cut off, has an unknown
    magic, or whose parts do not add up to its size. Bodies are not checked; see `crc_matches`.
    """
    position = start
    if end is None:
        end = len(buffer)
    while position < end:
        # The common case is spelled out: a V1 record with IPv4 hosts takes one unpack.
        if end - position >= _SMALLEST:
            size, magic, queue_offset, sys_flag, body_size = _COMMON_HEAD(buffer, position)
            stop = position + size
            if (
                magic == MAGIC_V1
                and not sys_flag & 0x30
                and 0 <= body_size <= size - _SMALLEST
                and stop <= end
                and (topic_size := buffer[at := position + 88 + body_size]) < 128
                and (at := at + 1 + topic_size) <= stop - 2
                and (high := buffer[at]) < 128
                and at + 2 + (high << 8 | buffer[at + 1]) == stop
            ):
                yield position, size, queue_offset, sys_flag, body_size, at + 2
                position = stop
                continue
        found = _measure(buffer, position, end)
        if found is None:
            return
        yield found
        position += found[1]


def _measure(buffer: ReadableBuffer, position: int, end: int) -> Found | None:
    """Check one record of any form and raise what precisely is wrong; None for a blank."""
    left = end - position
    if left < BLANK_SIZE:
        raise MessageMalformed(f"only {left} bytes remain, too few for a record", position)
    size, magic = _SIZE_AND_MAGIC(buffer, position)
    if magic == MAGIC_BLANK:
        if not BLANK_SIZE <= size <= left:
            raise MessageMalformed(f"blank record of {size} bytes; only {left} remain", position)
        return None
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise MessageMalformed(f"unknown magic {magic & 0xFFFF_FFFF:08x}", position)
    if size > left:
        raise MessageMalformed(f"it declares {size} bytes, but only {left} remain", position)
    if size < _SMALLEST:
        raise MessageMalformed(f"{size} bytes are too few for a message", position)
    body_at = BODY_AT[buffer[position + FLAG_BYTE] >> 4 & 3]
    length_size = 1 if magic == MAGIC_V1 else 2
    spare = size - body_at - length_size - 2
    if spare < 0:
        raise MessageMalformed(f"{size} bytes are too few for its hosts", position)
    (body_size,) = _INT(buffer, position + body_at - 4)
    if not 0 <= body_size <= spare:
        raise MessageMalformed(f"a body of {body_size} bytes in a record of {size}", position)
    at = position + body_at + body_size
    topic_size = _signed_byte(buffer[at]) if length_size == 1 else _SHORT(buffer, at)[0]
    if not 0 <= topic_size <= spare - body_size:
        raise MessageMalformed(f"a topic of {topic_size} bytes in a record of {size}", position)
    text_at = at + length_size + topic_size + 2
    (text_size,) = _SHORT(buffer, text_at - 2)
    if text_size != spare - body_size - topic_size:
        reason = f"properties of {text_size} bytes do not end where its {size} bytes end"
        raise MessageMalformed(reason, position)
    (queue_offset,) = _LONG(buffer, position + 20)
    (sys_flag,) = _INT(buffer, position + 36)
    return position, size, queue_offset, sys_flag, body_size, text_at


def _signed_byte(value: int) -> int:
    return value - 256 if value > 127 else value


class RecordFields(msgspec.Struct, frozen=True, gc=False):
    """The fields of one record, each read from the buffer when it is asked for.

    What is derived from it has a buffer, and a position that `scan_records` returned: lengths are
    not checked again.
    """

    if TYPE_CHECKING:
        buffer: ReadableBuffer
        position: int

    @property
    def store_size(self) -> int:
        """Bytes the whole record takes."""
        return _INT(self.buffer, self.position)[0]

    @property
    def body_crc(self) -> int:
        """The checksum of the stored body, 31 bits; see `checksum`."""
        return _INT(self.buffer, self.position + 8)[0]

    @property
    def queue_id(self) -> int:
        """The queue the message was sent to."""
        return _INT(self.buffer, self.position + 12)[0]

    @property
    def flag(self) -> int:
        """The application's own flag."""
        return _INT(self.buffer, self.position + 16)[0]

    @property
    def queue_offset(self) -> int:
        """The message's number in its queue."""
        return _LONG(self.buffer, self.position + 20)[0]

    @property
    def commit_log_offset(self) -> int:
        """Where the record begins in its broker's commit log."""
        return _LONG(self.buffer, self.position + 28)[0]

    @property
    def sys_flag(self) -> int:
        """RocketMQ's own bits, as they travelled; see `pocketmq.model.kinds.SysFlag`."""
        return _INT(self.buffer, self.position + 36)[0]

    @property
    def born_timestamp_ms(self) -> int:
        """When the producer sent it."""
        return _LONG(self.buffer, self.position + 40)[0]

    @property
    def born_host_bytes(self) -> bytes:
        """The producer's address, 8 bytes or 20."""
        return self._bytes(48, self._store_timestamp_at())

    @property
    def store_timestamp_ms(self) -> int:
        """When the broker stored it."""
        return _LONG(self.buffer, self.position + self._store_timestamp_at())[0]

    @property
    def store_host_bytes(self) -> bytes:
        """The broker's address, 8 bytes or 20."""
        return self._bytes(self._store_timestamp_at() + 8, self._body_at() - 16)

    @property
    def reconsume_times(self) -> int:
        """How often consuming it has failed so far."""
        return _INT(self.buffer, self.position + self._body_at() - 16)[0]

    @property
    def prepared_transaction_offset(self) -> int:
        """Where the half message of a committed transaction lies in the commit log."""
        return _LONG(self.buffer, self.position + self._body_at() - 12)[0]

    @property
    def body_size(self) -> int:
        """Bytes of the body as stored, compressed or not."""
        return _INT(self.buffer, self.position + self._body_at() - 4)[0]

    @property
    def stored_body(self) -> bytes:
        """The body as stored, compressed or not."""
        body_at = self._body_at()
        (size,) = _INT(self.buffer, self.position + body_at - 4)
        return self._bytes(body_at, body_at + size)

    @property
    def topic_bytes(self) -> bytes:
        """The topic's name in UTF-8."""
        start, end = self._topic_span()
        return self._bytes(start, end)

    @property
    def property_bytes(self) -> bytes:
        """The properties as text; see `property_text`."""
        _, end = self._topic_span()
        return self._bytes(end + 2, self.store_size)

    def crc_matches(self) -> bool:
        """Return whether the stored body has the checksum that was stored with it."""
        body_at = self.position + self._body_at()
        (size,) = _INT(self.buffer, body_at - 4)
        body = memoryview(self.buffer)[body_at : body_at + size]
        return checksum(body) == self.body_crc

    def tags_code(self) -> int:
        """Return the tag's hash as consume queues hold it: 0 without a tag."""
        return tags_code(self.property_bytes)

    def _bytes(self, start: int, end: int) -> bytes:
        return bytes(self.buffer[self.position + start : self.position + end])

    def _body_at(self) -> int:
        return BODY_AT[self.buffer[self.position + FLAG_BYTE] >> 4 & 3]

    def _store_timestamp_at(self) -> int:
        return 68 if self.buffer[self.position + FLAG_BYTE] & 0x10 else 56

    def _topic_span(self) -> tuple[int, int]:
        at = self._body_at()
        at += _INT(self.buffer, self.position + at - 4)[0]
        if _INT(self.buffer, self.position + 4)[0] == MAGIC_V1:
            return at + 1, at + 1 + self.buffer[self.position + at]
        return at + 2, at + 2 + _SHORT(self.buffer, self.position + at)[0]


class RecordView(RecordFields, frozen=True, gc=False):
    """One record. Make one only for a position that `scan_records` returned."""

    buffer: ReadableBuffer
    position: int


def checksum(body: ReadableBuffer) -> int:
    """Return RocketMQ's checksum of a body: CRC-32 without its highest bit."""
    return crc32(body) & 0x7FFF_FFFF


def tags_code(property_bytes: bytes) -> int:
    """Return the hash of the tag among these properties, 0 if there is none."""
    _, found, rest = property_bytes.rpartition(b"\x02TAGS\x01")
    if found and (tag := rest.partition(b"\x02")[0]):
        return _tag_hash(tag)
    if not found and not property_bytes.startswith(b"TAGS\x01"):
        return 0
    first = find_property(property_bytes, b"TAGS")  # the first of all, or before an empty one
    return 0 if first is None else _tag_hash(first)


_REMEMBERED = 256  # a tag may have 32 kB, and many of them would fill the memory


def _tag_hash(tag: bytes) -> int:
    return _remembered_hash(tag) if len(tag) <= _REMEMBERED else _hash(tag)


def _hash(tag: bytes) -> int:
    return java_hash(tag.decode("utf-8", "replace"))


_remembered_hash = lru_cache(maxsize=4096)(_hash)


def looks_torn(property_bytes: bytes) -> bool:
    """Return whether properties could be what a crash left of others.

    What did not reach the disk reads as zeros, from some place to the record's end or, on a
    machine that lost its power, over whole sectors. The body's checksum does not cover them.
    """
    if not property_bytes:
        return False
    return not property_bytes[-1] or (len(property_bytes) > SECTOR and 0 in property_bytes)
