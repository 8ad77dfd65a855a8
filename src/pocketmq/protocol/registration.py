"""A broker's registration: JSON, or compressed and then mostly not JSON.

The compressed form is a zlib stream of counted parts: the data version, a text line per topic, the
filter servers, and from 5.0 on the mappings of static topics. Lengths are checked before they are
used, and inflating stops at a limit.
"""

import struct
import zlib

import msgspec

from pocketmq.errors import BodyMalformed
from pocketmq.model import DataVersion, TopicConfig, TopicFilterType, TopicMapping, WireValue
from pocketmq.protocol.fastjson import dumps
from pocketmq.protocol.json_values import decode_body, encode_body
from pocketmq.protocol.peers import CURRENT_VERSION, VersionGate
from pocketmq.protocol.requests.topics import TopicTableBody

MAX_INFLATED = 64 * 1024 * 1024
"""Bytes a compressed registration may inflate to: some half a million topics."""
MAX_PARTS = 500_000
"""Topics a compressed registration may list: a few bytes can pose as millions of short lines."""

_INT = struct.Struct(">i")
_WHAT = "Registration"


class Registration(WireValue, frozen=True, kw_only=True):
    """What a broker registers at name servers (Java: RegisterBrokerBody)."""

    topics: TopicTableBody = msgspec.field(
        name="topicConfigSerializeWrapper", default_factory=TopicTableBody
    )
    filter_server_list: list[str] = []


def decode_registration(
    data: bytes, *, compressed: bool = False, version: int = CURRENT_VERSION
) -> Registration:
    """Read a registration by a broker of a version. Raises `BodyMalformed`."""
    if version < VersionGate.REGISTER_BODY:
        return Registration(topics=decode_body(data, TopicTableBody))
    if not compressed:
        return decode_body(data, Registration)
    parts = _InflatedParts(_inflate(data))
    data_version = decode_body(parts.counted(), DataVersion)
    configs = [_read_line(parts.counted_text()) for _ in range(parts.count())]
    filter_servers = decode_body(parts.counted(), list[str])
    mappings = None
    if version >= VersionGate.TOPIC_QUEUE_MAPPING:
        mappings = [decode_body(parts.counted(), TopicMapping) for _ in range(parts.count())]
    return Registration(
        topics=TopicTableBody(
            data_version=data_version,
            topic_config_table={config.topic_name: config for config in configs},
            topic_queue_mapping_info_map=(
                None if mappings is None else {each.topic or "": each for each in mappings}
            ),
        ),
        filter_server_list=filter_servers,
    )


def encode_registration(
    registration: Registration, *, compressed: bool = False, version: int = CURRENT_VERSION
) -> bytes:
    """Write a registration as a broker of a version does.

    4.x name servers refuse the longer lines of 5.x in the compressed form.
    """
    if not compressed:
        return encode_body(registration)
    modern = version >= VersionGate.TOPIC_QUEUE_MAPPING
    topics = registration.topics
    parts = [_counted(encode_body(topics.data_version)), _INT.pack(len(topics.topic_config_table))]
    parts += [
        _counted(_write_line(config, modern=modern))
        for config in topics.topic_config_table.values()
    ]
    parts.append(_counted(dumps(registration.filter_server_list)))
    if modern:
        mappings = topics.topic_queue_mapping_info_map or {}
        parts.append(_INT.pack(len(mappings)))
        parts += [_counted(encode_body(each)) for each in mappings.values()]
    return zlib.compress(b"".join(parts), 9)


def _inflate(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, MAX_INFLATED + 1)
    except zlib.error as error:
        raise BodyMalformed(_WHAT, "it does not inflate") from error
    if len(inflated) > MAX_INFLATED:
        raise BodyMalformed(_WHAT, f"it inflates to more than {MAX_INFLATED} bytes")
    return inflated


class _InflatedParts:
    """The inflated bytes, taken part by part."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def count(self) -> int:
        """Take the number of parts that follow; each has at least its own length."""
        number = self._int()
        if number * _INT.size > len(self._data) - self._position:
            raise BodyMalformed(_WHAT, f"it declares {number} parts and ends before them")
        if number > MAX_PARTS:
            raise BodyMalformed(
                _WHAT, f"it declares {number} parts; at most {MAX_PARTS} are allowed"
            )
        return number

    def counted(self) -> bytes:
        length = self._int()
        end = self._position + length
        if end > len(self._data):
            raise BodyMalformed(_WHAT, f"a part of {length} bytes is cut off")
        part = self._data[self._position : end]
        self._position = end
        return part

    def counted_text(self) -> str:
        try:
            return self.counted().decode()
        except UnicodeDecodeError as error:
            raise BodyMalformed(_WHAT, "a topic's line is not UTF-8") from error

    def _int(self) -> int:
        if self._position + _INT.size > len(self._data):
            raise BodyMalformed(_WHAT, "it ends where a length is expected")
        number: int = _INT.unpack_from(self._data, self._position)[0]
        if number < 0:
            raise BodyMalformed(_WHAT, f"a length of {number}")
        self._position += _INT.size
        return number


def _counted(part: bytes) -> bytes:
    return _INT.pack(len(part)) + part


def _read_line(line: str) -> TopicConfig:
    """Read `name read write perm filter-type [attributes]`."""
    words = line.split(" ", 5)
    try:
        name, reads, writes, perm, kind = words[:5]
        config = TopicConfig(
            topic_name=name,
            read_queue_nums=_int(reads),
            write_queue_nums=_int(writes),
            perm=_int(perm),
            topic_filter_type=TopicFilterType[kind],
        )
    except (ValueError, KeyError) as error:
        raise BodyMalformed(_WHAT, f"a topic's line {line[:200]!r} is not readable") from error
    if len(words) < 6 or not words[5]:
        return config
    try:
        attributes = decode_body(words[5], dict[str, str])
    except BodyMalformed:
        return config  # like Java, take the topic without its attributes then
    return msgspec.structs.replace(config, attributes=attributes)


def _int(text: str) -> int:
    number = int(text)
    if not -(2**31) <= number < 2**31:
        raise ValueError(text)
    return number


def _write_line(config: TopicConfig, *, modern: bool) -> bytes:
    words = [config.topic_name, config.read_queue_nums, config.write_queue_nums, config.perm]
    line = " ".join(str(word) for word in [*words, config.topic_filter_type.name])
    return line.encode() + (b" " + dumps(config.attributes) if modern else b"")
