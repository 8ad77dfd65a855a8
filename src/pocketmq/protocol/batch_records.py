"""From the body of SEND_BATCH_MESSAGE straight to stored records, without a value for each message.

The same as `decode_batch` and `pack_record` one message at a time, at a third of the cost.
"""

import re
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias
from zlib import crc32

import msgspec

from pocketmq.errors import MessageMalformed
from pocketmq.native import in_core
from pocketmq.protocol.batch import ENTRY_OVERHEAD, decode_batch
from pocketmq.protocol.record_scan import SECTOR, looks_torn, tags_code
from pocketmq.protocol.records import Record, pack_record, topic_prefix

_TAGS = b"\x02TAGS\x01"
_CRC = 0x7FFF_FFFF
_ENTRY: Callable[[bytes, int], tuple[int, int, int]] = struct.Struct(">i8xii").unpack_from
# Size, magic, checksum, queue id, flag, queue offset, position; all that a batch has in common;
# size of the body.
_MANY = 8
"""Entries from which on it pays to find out whether all are alike."""
_SIZE_AND_MAGIC: Callable[[int, int], bytes] = struct.Struct(">ii").pack
_Pack: TypeAlias = Callable[..., bytes]
_Unpack: TypeAlias = Callable[[bytes], Iterator[tuple[int, bytes, bytes]]]
_HEADS = {size: struct.Struct(f">iiiiiqq{size}si").pack for size in (48, 60, 72)}


class PackedBatch(msgspec.Struct, frozen=True, gc=False):
    """Records of a batch back to back: their bytes, and of each its position, size and tag code.

    The columns are arrays of 8, 4 and 8 bytes, as an index stores them.
    """

    data: bytes
    positions: "array[int]"
    sizes: "array[int]"
    tags: "array[int]"
    looks_torn: bool = False
    """Whether one of them looks like one that a crash cut short."""


def columns(
    positions: Iterable[int], sizes: Iterable[int], tags: Iterable[int]
) -> "tuple[array[int], array[int], array[int]]":
    """Return positions, sizes and tag codes in the form of a `PackedBatch`."""
    return array("Q", positions), array("I", sizes), array("q", tags)


@in_core
def pack_batch(
    body: bytes,
    like: Record,
    queue_offset: int,
    commit_log_offset: int,
    *,
    store_timestamp_ms: int,
    store_host: bytes,
) -> PackedBatch:
    """Make records of a batch's messages, from a queue offset and a position of the log on.

    Everything but body, properties and flag is as in `like`. Raises `MessageMalformed` as
    `decode_batch` does.
    """
    # A message without body or properties is packed once, to take from it what all have in common.
    sample = pack_record(
        msgspec.structs.replace(like, body=b"", property_bytes=b"", body_crc=None),
        queue_offset,
        commit_log_offset,
        store_timestamp_ms,
        store_host,
    )
    magic, topic = topic_prefix(like.topic)
    common = sample[36 : len(sample) - len(topic) - 6]
    growth = len(sample) - ENTRY_OVERHEAD
    shape = _common_shape(body)
    if shape is None:
        mould = _Mould(magic, like.queue_id, common, topic, growth)
        return _pack_each(body, mould, queue_offset, commit_log_offset)
    head = _SIZE_AND_MAGIC(shape.entry_size + growth, magic)
    sizes_after = common + shape.body_size.to_bytes(4, "big")
    fixed = (head, sample[12:16], sizes_after, topic)
    return _pack_alike(body, shape, fixed, queue_offset, commit_log_offset)


class _Mould(msgspec.Struct, frozen=True, gc=False):
    """What the records of a batch have in common, and how many bytes more than entries they are."""

    magic: int
    queue_id: int
    common: bytes
    topic: bytes
    growth: int


def _pack_each(body: bytes, mould: _Mould, queue_offset: int, position: int) -> PackedBatch:
    """Make records of entries one by one."""
    magic, queue_id, common, topic = mould.magic, mould.queue_id, mould.common, mould.topic
    pack, growth = _HEADS[len(common)], mould.growth
    pieces: list[bytes] = []
    positions: list[int] = []
    sizes: list[int] = []
    tags: list[int] = []
    at, end, torn = 0, len(body), False
    ending: bytes | None = None
    code = 0
    while at < end:
        if end - at < ENTRY_OVERHEAD:
            break
        entry_size, flag, body_size = _ENTRY(body, at)
        stop, text_at = at + entry_size, at + 20 + body_size
        if stop > end or text_at > stop - 2 or body_size < 0:
            break
        content, text = body[at + 20 : text_at], body[text_at:stop]
        if text[0] << 8 | text[1] != stop - text_at - 2 or text[0] > 127:
            break
        size = entry_size + growth
        crc = crc32(content) & _CRC
        pieces += (
            pack(size, magic, crc, queue_id, flag, queue_offset, position, common, body_size),
            content,
            topic,
            text,
        )
        positions.append(position)
        sizes.append(size)
        if ending is None or not text.endswith(ending):  # most batches have one tag, and it is last
            _, found, rest = text.rpartition(_TAGS)
            named = rest[:1] not in (b"", b"\x02")
            ending, code = (found + rest if found and named else None), tags_code(text[2:])
        tags.append(code)
        if (not text[-1] or entry_size > SECTOR) and looks_torn(text[2:]):
            torn = True
        queue_offset += 1
        position += size
        at = stop
    else:
        return PackedBatch(b"".join(pieces), *columns(positions, sizes, tags), torn)
    decode_batch(body)  # says what is wrong
    raise MessageMalformed("a batch that cannot be read", at)


class _Shape(msgspec.Struct, frozen=True, gc=False):
    """What the entries of a batch have in common: their sizes, and the code of their tag."""

    entry_size: int
    body_size: int
    tag: int


def _common_shape(body: bytes) -> _Shape | None:
    """Return whether a batch has many entries, all with the same sizes and the same tag."""
    end = len(body)
    if end < _MANY * ENTRY_OVERHEAD:
        return None
    size, _, body_size = _ENTRY(body, 0)
    if not ENTRY_OVERHEAD <= size <= SECTOR or end % size or end < _MANY * size:
        return None
    if not 0 <= body_size <= size - ENTRY_OVERHEAD:
        return None
    text = body[20 + body_size : size]
    if text[0] << 8 | text[1] != len(text) - 2 or 0 in body[size - 1 :: size]:
        return None
    before, found, rest = text.rpartition(_TAGS)
    tag = rest.partition(b"\x02")[0]
    if found and tag:
        label = text[len(before) :][: len(_TAGS) + len(tag) + 1]
        if len(before) + len(label) < len(text) and body.count(_TAGS) != end // size:
            return None  # the last tag counts, and some entry may have another one behind this
    elif b"TAGS\x01" in body:
        return None
    else:
        before, label = text, b""
    if _entries_like(size, body_size, len(before) - 2, label)(body) is None:
        return None
    return _Shape(size, body_size, tags_code(text[2:]))


@lru_cache(maxsize=256)
def _entries_like(
    size: int, body_size: int, before: int, label: bytes
) -> Callable[[bytes], re.Match[bytes] | None]:
    """Return what matches nothing but entries of these sizes with `label` at one place in each.

    Compiled once, it looks at each entry at a tenth of what a step of Python costs.
    """
    text_size = size - ENTRY_OVERHEAD - body_size
    entry_size, content_size = size.to_bytes(4, "big"), body_size.to_bytes(4, "big")
    after = text_size - before - len(label)
    entry = b"%b.{12}%b.{%d}%b.{%d}%b.{%d}" % (
        re.escape(entry_size),
        re.escape(content_size),
        body_size,
        re.escape(text_size.to_bytes(2, "big")),
        before,
        re.escape(label),
        after,
    )
    return re.compile(b"(?s)(?:%s)++" % entry).fullmatch


def _pack_alike(
    body: bytes, shape: _Shape, fixed: tuple[bytes, ...], queue_offset: int, position: int
) -> PackedBatch:
    """Make records of entries that differ in nothing but flags, bodies and properties."""
    head, queue, common, topic = fixed
    unpack, pack, size = _layouts(shape.entry_size, shape.body_size, len(common), len(topic))
    number = len(body) // shape.entry_size
    positions = range(position, position + number * size, size)
    records = [
        pack(head, crc32(content) & _CRC, queue, flag, offset, at, common, content, topic, text)
        for (flag, content, text), offset, at in zip(
            unpack(body), range(queue_offset, queue_offset + number), positions, strict=True
        )
    ]
    same = array("I", (size,)) * number, array("q", (shape.tag,)) * number
    return PackedBatch(b"".join(records), array("Q", positions), *same)


@lru_cache(maxsize=256)
def _layouts(entry: int, body: int, common: int, topic: int) -> tuple[_Unpack, _Pack, int]:
    """Return what takes entries of one shape apart, what puts records together, and their size."""
    text = entry - 20 - body
    record = struct.Struct(f">8si4siqq{common}s{body}s{topic}s{text}s")
    return struct.Struct(f">12xi4x{body}s{text}s").iter_unpack, record.pack, record.size
