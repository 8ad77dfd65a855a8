"""From the body of SEND_BATCH_MESSAGE straight to stored records, without a value for each message.

The same as `decode_batch` and `pack_record` one message at a time, at a third of the cost.
"""

import struct
from collections.abc import Callable
from zlib import crc32

import msgspec

from pocketmq.errors import MessageMalformed
from pocketmq.protocol.batch import ENTRY_OVERHEAD, decode_batch
from pocketmq.protocol.record_scan import SECTOR, looks_torn, tags_code
from pocketmq.protocol.records import Record, pack_record, topic_prefix

_ENTRY: Callable[[bytes, int], tuple[int, int, int]] = struct.Struct(">i8xii").unpack_from
# Size, magic, checksum, queue id, flag, queue offset, position; all that a batch has in common;
# size of the body.
_HEADS = {size: struct.Struct(f">iiiiiqq{size}si").pack for size in (48, 60, 72)}


class PackedBatch(msgspec.Struct, frozen=True, gc=False):
    """Records of a batch back to back: their bytes, and of each its position, size and tag code."""

    data: bytes
    positions: list[int]
    sizes: list[int]
    tags: list[int]
    looks_torn: bool = False
    """Whether one of them could not be told from one that a crash cut short."""


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
    pack, queue_id = _HEADS[len(common)], like.queue_id
    growth = len(sample) - ENTRY_OVERHEAD
    pieces: list[bytes] = []
    positions: list[int] = []
    sizes: list[int] = []
    tags: list[int] = []
    at, end, position, torn = 0, len(body), commit_log_offset, False
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
        crc = crc32(content) & 0x7FFF_FFFF
        pieces += (
            pack(size, magic, crc, queue_id, flag, queue_offset, position, common, body_size),
            content,
            topic,
            text,
        )
        positions.append(position)
        sizes.append(size)
        if ending is None or not text.endswith(ending):  # most batches have one tag, and it is last
            _, found, rest = text.rpartition(b"\x02TAGS\x01")
            ending, code = (found + rest if found else None), tags_code(text[2:])
        tags.append(code)
        if (not text[-1] or entry_size > SECTOR) and looks_torn(text[2:]):
            torn = True
        queue_offset += 1
        position += size
        at = stop
    else:
        return PackedBatch(b"".join(pieces), positions, sizes, tags, torn)
    decode_batch(body)  # says what is wrong
    raise MessageMalformed("a batch that cannot be read", at)
