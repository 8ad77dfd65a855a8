"""Headers in RocketMQ's own binary layout: fixed numbers, a remark, then keys and values.

    code:int16 language:int8 version:int16 opaque:int32 flag:int32
    remark: length:int32 text
    fields: length:int32 (key: length:int16 text, value: length:int32 text)*

Owns the layout both ways; independent of frames and of what fields mean. Java's reader trusts
lengths as far as the frame reaches and would read a string out of the body; here every length
must lie within what encloses it, and nothing may be left over.
"""

import struct
from collections.abc import Mapping
from typing import TypeAlias

from pocketmq.errors import HeaderMalformed
from pocketmq.protocol.header_json import FIELDS_LIMIT
from pocketmq.protocol.peers import Language

BinaryHeader: TypeAlias = tuple[
    int, int, int, Language | None, int, str | None, dict[str, str] | None
]
"""Code, opaque, flag, language, version, remark, fields."""

_FIXED = struct.Struct(">hbhiii")
_INT32 = struct.Struct(">i")
_KEY = struct.Struct(">h")
_KEY_LIMIT = 0x7FFF
_SMALLEST = _FIXED.size + _INT32.size

_unpack_fixed = _FIXED.unpack_from
_unpack_int32 = _INT32.unpack_from
_unpack_key = _KEY.unpack_from

_LANGUAGES: dict[int, Language] = {language.value: language for language in Language}


def read_binary_header(header: bytes) -> BinaryHeader:
    """Read a header. As in Java, what has no length is null: remark, fields, a field's value.

    Null values, and values under a null key, are left out. Broken UTF-8 becomes U+FFFD.
    Raises `HeaderMalformed` for lengths that contradict each other.
    """
    size = len(header)
    if size < _SMALLEST:
        raise HeaderMalformed(f"{size} bytes are too few for a binary header")
    code, language, version, opaque, flag, remark_size = _unpack_fixed(header)
    start = _FIXED.size
    end = start + remark_size
    if remark_size < 0 or end + 4 > size:
        raise HeaderMalformed(f"remark of {remark_size} bytes in a header of {size}")
    remark = header[start:end].decode("utf-8", "replace") if remark_size else None
    (fields_size,) = _unpack_int32(header, end)
    if end + 4 + fields_size != size:
        raise HeaderMalformed(f"fields of {fields_size} bytes in a header of {size}")
    fields = _read_fields(header, end + 4) if fields_size else None
    return code, opaque, flag, _LANGUAGES.get(language), version, remark, fields


def _read_fields(header: bytes, position: int) -> dict[str, str]:
    fields: dict[str, str] = {}
    size = len(header)
    left = FIELDS_LIMIT
    try:
        while position < size:
            left -= 1
            if left < 0:  # repeated and empty ones count too: each costs time
                raise HeaderMalformed(f"more than {FIELDS_LIMIT} fields")
            (length,) = _unpack_key(header, position)
            start = position + 2
            key_end = start + length
            (value_size,) = _unpack_int32(header, key_end)
            position = key_end + 4 + value_size
            if length < 0 or value_size < 0 or position > size:
                raise HeaderMalformed(f"field of {length} and {value_size} bytes at byte {start}")
            if length and value_size:
                key = header[start:key_end].decode("utf-8", "replace")
                fields[key] = header[key_end + 4 : position].decode("utf-8", "replace")
    except struct.error:
        raise HeaderMalformed(f"field cut off at byte {position}") from None
    return fields


def write_binary_header(  # noqa: PLR0917 - the layout's seven fields, one order everywhere
    code: int,
    opaque: int,
    flag: int,
    language: Language | None,
    version: int,
    remark: str | None,
    ext: Mapping[str, str] | None,
) -> bytes:
    """Write a header. An empty remark or value is read back as null, as Java writes and reads it.

    Raises `HeaderMalformed` for numbers and keys the layout cannot hold; JSON can.
    """
    fields = bytearray()
    for key, value in ext.items() if ext else ():
        key_bytes = key.encode("utf-8", "replace")
        value_bytes = value.encode("utf-8", "replace")
        if len(key_bytes) > _KEY_LIMIT:
            raise HeaderMalformed(f"a key of {len(key_bytes)} bytes; use the JSON serialisation")
        fields += _KEY.pack(len(key_bytes)) + key_bytes
        fields += _INT32.pack(len(value_bytes)) + value_bytes
    remark_bytes = remark.encode("utf-8", "replace") if remark else b""
    # A language unknown to us has lost its number; Java could not write it at all.
    number = Language.OTHER if language is None else language
    try:
        fixed = _FIXED.pack(code, number, version, opaque, flag, len(remark_bytes))
    except struct.error as error:
        raise HeaderMalformed(
            f"code {code}, version {version}, opaque {opaque} and flag {flag} do not all fit the "
            "binary layout (int16, int16, int32, int32); use the JSON serialisation"
        ) from error
    return b"".join((fixed, remark_bytes, _INT32.pack(len(fields)), fields))
