"""Headers as JSON: written byte for byte as fastjson 1 does, read as every Java reader agrees.

Owns the text of a header and the strings in its `extFields`. Independent of frames and of what
the fields mean. A plain header is read by msgspec in one pass, its `extFields` left raw until asked
for; all else is left to `header_lenient`.
"""

import re
import struct
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from pocketmq.errors import HeaderMalformed
from pocketmq.protocol import header_lenient as lenient
from pocketmq.protocol.peers import CURRENT_VERSION, Language

FIELDS_LIMIT = 4096
"""How many fields a header may hold; Java's largest has some twenty."""
REQUEST_TAIL = b',"serializeTypeCurrentRPC":"JSON","version":%d}' % CURRENT_VERSION
"""How the headers of requests end, after their number, where they are written by template."""

_UNCOUNTED_SIZE = 64 * 1024
_OTHER_QUOTES = 32  # around the header's own keys and values
_NO_EXT: Final = Raw()

_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class JsonHeader(msgspec.Struct, frozen=True, gc=False):
    """A header's own fields as JSON carries them, with Java's values for missing keys.

    Only `opaque` differs: Java makes up a new number where the key is missing, we read 0.
    """

    code: _Int32 = 0
    ext: Raw = msgspec.field(name="extFields", default=_NO_EXT)
    flag: _Int32 = 0
    language: str = "JAVA"  # `LANGUAGE_NAMES` gives its meaning
    opaque: _Int32 = 0
    remark: str | None = None
    version: _Int32 = 0


class _Written(msgspec.Struct, gc=False):
    """The keys fastjson writes, in its alphabetical order; what is unset is left out."""

    code: int
    extFields: Mapping[str, str] | UnsetType  # noqa: N815 - Java's key
    flag: int
    language: str | UnsetType
    opaque: int
    remark: str | UnsetType
    serializeTypeCurrentRPC: str  # noqa: N815 - Java's key
    version: int


class _LanguageNames(dict[str, Language | None]):
    """Java's reading of a language name: any case, and null for one it does not know."""

    def __missing__(self, name: str) -> Language | None:
        return lenient.as_language(name)


LANGUAGE_NAMES = _LanguageNames({language.name: language for language in Language})

_decode_plain = msgspec.json.Decoder(JsonHeader).decode
_decode_plain_ext = msgspec.json.Decoder(dict[str, str]).decode
_encode = msgspec.json.Encoder().encode
_check_int32 = struct.Struct(">iiii").pack

# msgspec refuses with errors of its own, and passes on what Python's text decoder raises.
REFUSALS = (msgspec.DecodeError, ValueError, OverflowError, RecursionError)


def read_json_header(header: bytes) -> JsonHeader:
    """Read a header's text; `read_ext` reads the fields it holds raw.

    Raises `HeaderMalformed`.
    """
    if len(header) > _UNCOUNTED_SIZE:
        _check_field_count(header)
    try:
        return _decode_plain(header)
    except REFUSALS:
        pass
    fields = lenient.load_json(header)
    if not isinstance(fields, dict):
        raise HeaderMalformed("not a JSON object")
    ext = lenient.as_strings(fields.get("extFields"))
    language = lenient.as_language(fields.get("language", "JAVA"))
    remark = fields.get("remark")
    return JsonHeader(
        code=lenient.as_int32("code", fields.get("code")),
        ext=_NO_EXT if ext is None else Raw(_encode(ext)),
        flag=lenient.as_int32("flag", fields.get("flag")),
        language="" if language is None else language.name,
        opaque=lenient.as_int32("opaque", fields.get("opaque")),
        remark=None if remark is None else lenient.as_string(remark),
        version=lenient.as_int32("version", fields.get("version")),
    )


def read_ext(raw: Raw) -> dict[str, str] | None:
    """Read raw `extFields`: every value as a string, nulls left out; None when there are none.

    Raises `HeaderMalformed`.
    """
    try:
        return _decode_plain_ext(raw)
    except REFUSALS:
        text = bytes(raw)
    return lenient.as_strings(lenient.load_json(text)) if text else None


def write_json_header(  # noqa: PLR0917 - the layout's seven fields, one order everywhere
    code: int,
    opaque: int,
    flag: int,
    language: Language | None,
    version: int,
    remark: str | None,
    ext: Mapping[str, str] | None,
) -> bytes:
    """Write a header as fastjson 1 would: keys sorted, `ext` in its own order, nulls left out.

    Raises `HeaderMalformed` for numbers Java could not read back.
    """
    try:
        _check_int32(code, opaque, flag, version)
    except struct.error as error:
        raise HeaderMalformed(
            f"code {code}, opaque {opaque}, flag {flag} and version {version} must be 32-bit"
        ) from error
    header = _Written(
        code,
        UNSET if ext is None else ext,
        flag,
        UNSET if language is None else language._name_,
        opaque,
        UNSET if remark is None else remark,
        "JSON",
        version,
    )
    try:
        text = _encode(header)
    except UnicodeEncodeError:
        if remark is not None:
            header.remark = lenient.sound_text(remark)
        if ext is not None:
            header.extFields = {
                lenient.sound_text(key): lenient.sound_text(ext[key]) for key in ext
            }
        text = _encode(header)
    if text.isascii():
        rare = 0x7F in text or _LOWER_HEX(text) is not None
    else:
        rare = _RARE(text) is not None
    return _ESCAPED.sub(_as_fastjson, text.decode()).encode() if rare else text


# fastjson 1 writes U+007F–U+009F, U+2028 and U+2029 as escapes, and hex digits in upper case;
# msgspec (like fastjson2) writes the former raw and the latter in lower case. All read both.
_LOWER_HEX = re.compile(rb"\\u00[01][a-f]").search
_RARE = re.compile(rb"\\u00[01][a-f]|\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]").search
_ESCAPED = re.compile(r"\\u[0-9a-f]{4}|\\.|[\x7f-\x9f\u2028\u2029]")


def _as_fastjson(match: re.Match[str]) -> str:
    text = match[0]
    if len(text) == 1:
        return f"\\u{ord(text):04X}"
    return text if len(text) == 2 else f"\\u{text[2:].upper()}"


def _check_field_count(header: bytes) -> None:
    """Keep a large header from becoming a far larger table of tiny fields.

    A field of two strings has four quotes, any other at least one; quotes inside strings are
    escaped. Large values are fine: the reply to a batch joins all its message ids in one.
    """
    most = 4 * FIELDS_LIMIT + _OTHER_QUOTES
    if len(header.split(b'"', most + 1)) <= most + 1:  # few quotes: far quicker than to count
        return
    if header.count(b'"') - header.count(b'\\"') > most:
        raise HeaderMalformed(f"more than {FIELDS_LIMIT} fields in {len(header)} bytes")
