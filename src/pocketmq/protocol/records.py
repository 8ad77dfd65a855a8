"""Making the stored form of messages, one by one.

A `Record` knows everything but its place; a commit log gives out places when it appends. Lengths
and ranges are checked when a record is made, so that appending cannot fail half way because
of one sender's odd message.
"""

import struct
from collections.abc import Callable
from functools import lru_cache

import msgspec

from pocketmq.errors import InvalidInput, MessageMalformed
from pocketmq.protocol.hosts import V4_SIZE, V6_SIZE
from pocketmq.protocol.property_text import LIMIT as PROPERTIES_LIMIT
from pocketmq.protocol.record_scan import (
    BLANK_SIZE,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    ReadableBuffer,
    RecordView,
    checksum,
    scan_records,
)

_V1_TOPIC_LIMIT = 127
_TOPIC_LIMIT = 32767
_SIZE_LIMIT = 0x7FFF_FFFF
_HOST_BITS = 0x30
_BLANK = struct.Struct(">ii").pack
_NUMBERS = struct.Struct(">iiiqiq").pack
_LENGTH = struct.Struct(">h").pack


def _heads(store_size: int) -> dict[int, tuple[Callable[..., bytes], int, int]]:
    """Return by size of the born host how to pack what precedes the body, and the host bits."""
    heads = {}
    for born_size, born_bit in ((V4_SIZE, 0), (V6_SIZE, 0x10)):
        head = struct.Struct(f">iiiiiqqiq{born_size}sq{store_size}siqi")
        heads[born_size] = head.pack, head.size, born_bit | (0x20 if store_size == V6_SIZE else 0)
    return heads


_PLACES = struct.Struct(">qq").pack
_TIME = struct.Struct(">q").pack
_HEADS = {V4_SIZE: _heads(V4_SIZE), V6_SIZE: _heads(V6_SIZE)}


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message as a broker stores it. Text is UTF-8 already; hosts are as `hosts` encodes them.

    `body` is compressed if `sys_flag` says so; the flag's host bits follow the hosts' sizes.
    Without a `body_crc` the body's own is written. Raises `InvalidInput` for a number or a length
    out of the format's range.
    """

    topic: bytes
    body: bytes
    property_bytes: bytes = b""
    queue_id: int = 0
    flag: int = 0
    sys_flag: int = 0
    born_timestamp_ms: int = 0
    born_host: bytes = bytes(V4_SIZE)
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    queue_offset: int = 0
    commit_log_offset: int = 0
    store_timestamp_ms: int = 0
    store_host: bytes = bytes(V4_SIZE)
    body_crc: int | None = None

    def __post_init__(self) -> None:
        try:
            _NUMBERS(
                self.queue_id,
                self.flag,
                self.sys_flag,
                self.born_timestamp_ms,
                self.reconsume_times,
                self.prepared_transaction_offset,
            )
        except struct.error as error:
            raise InvalidInput(f"a number is out of range for a message: {error}") from error
        text_size = len(self.property_bytes)
        if text_size > PROPERTIES_LIMIT:
            raise InvalidInput(
                f"the properties take {text_size} bytes; at most {PROPERTIES_LIMIT} are allowed"
            )
        if len(self.topic) > _TOPIC_LIMIT:
            raise InvalidInput(
                f"the topic name has {len(self.topic)} bytes; at most {_TOPIC_LIMIT} are allowed"
            )
        if len(self.born_host) not in _HEADS or len(self.store_host) not in _HEADS:
            raise InvalidInput("a host must have 8 bytes (IPv4) or 20 (IPv6)")
        if len(self.body) > _SIZE_LIMIT - 0x1_0000 - _TOPIC_LIMIT:
            raise InvalidInput(f"a body of {len(self.body)} bytes is too large for a record")


def encode_record(record: Record) -> bytes:
    """Return a record's bytes, with the places and times it holds."""
    return pack_record(
        record,
        record.queue_offset,
        record.commit_log_offset,
        record.store_timestamp_ms,
        record.store_host,
    )


def pack_record(
    record: Record,
    queue_offset: int,
    commit_log_offset: int,
    store_timestamp_ms: int,
    store_host: bytes,
) -> bytes:
    """Return a record's bytes, with the places, store time and store host given here.

    Raises `InvalidInput` if a place or time has more than 64 bits.
    """
    body, text, crc = record.body, record.property_bytes, record.body_crc
    body_size, text_size = len(body), len(text)
    magic, topic_field = topic_prefix(record.topic)
    pack_head, head_size, host_bits = _HEADS[len(store_host)][len(record.born_host)]
    try:
        head = pack_head(
            head_size + body_size + len(topic_field) + 2 + text_size,
            magic,
            checksum(body) if crc is None else crc,
            record.queue_id,
            record.flag,
            queue_offset,
            commit_log_offset,
            record.sys_flag & ~_HOST_BITS | host_bits,
            record.born_timestamp_ms,
            record.born_host,
            store_timestamp_ms,
            store_host,
            record.reconsume_times,
            record.prepared_transaction_offset,
            body_size,
        )
    except struct.error as error:
        raise InvalidInput(f"an offset or time is out of range for a message: {error}") from error
    return b"".join((head, body, topic_field, _LENGTH(text_size), text))


def placed(
    record: bytes, queue_offset: int, commit_log_offset: int, now_ms: int, store_host: bytes
) -> bytes:
    """Return a packed record with these places, time and host. All hosts must be IPv4."""
    return b"%b%b%b%b%b%b" % (
        record[:20], _PLACES(queue_offset, commit_log_offset), record[36:56], _TIME(now_ms),
        store_host, record[72:],
    )  # fmt: skip


class RecordForm:
    """Records of one topic's queue 0 that differ in body, place and time alone.

    For what a broker writes for itself by the thousand: the born time and host are the store's, and
    there are no flags. Packs what `pack_record` does of a `Record` like that.
    """

    __slots__ = ("_born_host", "_host_bits", "_magic", "_pack", "_rest", "_store_host", "size")

    def __init__(
        self, topic: bytes, property_bytes: bytes, *, born_host: bytes, store_host: bytes
    ) -> None:
        Record(topic=topic, body=b"", property_bytes=property_bytes, born_host=born_host)
        self._magic, topic_field = topic_prefix(topic)
        self._rest = topic_field + _LENGTH(len(property_bytes)) + property_bytes
        self._pack, head_size, self._host_bits = _HEADS[len(store_host)][len(born_host)]
        self.size = head_size + len(self._rest)
        """Bytes of a record besides its body."""
        self._born_host = born_host
        self._store_host = store_host

    def pack(self, body: bytes, queue_offset: int, commit_log_offset: int, now_ms: int) -> bytes:
        """Return the record of a body that is not compressed, at its place."""
        size = len(body)
        head = self._pack(
            self.size + size, self._magic, checksum(body), 0, 0, queue_offset, commit_log_offset,
            self._host_bits, now_ms, self._born_host, now_ms, self._store_host, 0, 0, size,
        )  # fmt: skip
        return b"".join((head, body, self._rest))


@lru_cache(maxsize=4096)
def topic_prefix(topic: bytes) -> tuple[int, bytes]:
    """Return the magic that a topic asks for, and the topic with its length before it."""
    size = len(topic)
    if size <= _V1_TOPIC_LIMIT:
        return MAGIC_V1, size.to_bytes(1, "big") + topic
    return MAGIC_V2, _LENGTH(size) + topic  # as 5.x does


def blank_record(size: int) -> bytes:
    """Return the mark of `size` unused bytes at the end of a commit-log file."""
    if not BLANK_SIZE <= size <= _SIZE_LIMIT:
        raise InvalidInput(
            f"a blank record cannot have {size} bytes; at least {BLANK_SIZE} are needed"
        )
    return _BLANK(size, MAGIC_BLANK)


def decode_record(buffer: ReadableBuffer, position: int = 0, end: int | None = None) -> Record:
    """Read the whole record at a position; raises `MessageMalformed` if there is none."""
    for found in scan_records(buffer, position, end):
        view = RecordView(buffer, found[0])
        return Record(
            topic=view.topic_bytes,
            body=view.stored_body,
            property_bytes=view.property_bytes,
            queue_id=view.queue_id,
            flag=view.flag,
            sys_flag=view.sys_flag,
            born_timestamp_ms=view.born_timestamp_ms,
            born_host=view.born_host_bytes,
            reconsume_times=view.reconsume_times,
            prepared_transaction_offset=view.prepared_transaction_offset,
            queue_offset=view.queue_offset,
            commit_log_offset=view.commit_log_offset,
            store_timestamp_ms=view.store_timestamp_ms,
            store_host=view.store_host_bytes,
            body_crc=view.body_crc,
        )
    raise MessageMalformed("no message starts here", position)
