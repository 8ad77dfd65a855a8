r"""Configuration as text: Java's properties format, in the bodies of 25, 26, 318, 319 and others.

Java servers write `name=value` lines without escaping anything, yet every reader undoes escapes.
This writer escapes what a reader would otherwise change, so that values such as `C:\store` arrive.
"""

import re
from collections.abc import Mapping

from pocketmq.errors import BodyMalformed
from pocketmq.protocol.request import Form

_LINE = re.compile(
    r"""[ \t\f]*+ (?: [#!][^\r\n]*+ | ((?:[^\\\r\n]++|\\\r\n|\\[\s\S]?)*+) ) (?:\r\n|\r|\n|\Z)""",
    re.VERBOSE,
)
_CONTINUED = re.compile(r"\\(?:(?:\r\n|\r|\n)[ \t\f]*+|(?P<kept>[^\r\n]))")
_ENTRY = re.compile(
    r"""(?P<key>(?:[^\\=:\ \t\f]++|\\[\s\S]?)*+) [ \t\f]*+ [=:]? [ \t\f]*+ (?P<value>[\s\S]*+)""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:u(?P<code>[\s\S]{0,4})|(?P<one>[\s\S]?))")
_FOUR_DIGITS = re.compile("[0-9a-fA-F]{4}")
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
# By what is safe: a class that names all the rest takes Python 15 ms to compile.
_UNSAFE = re.compile(r"[^ -\[\]-~]")  # backslashes, and all but printable ASCII
_UNSAFE_IN_KEY = re.compile(r"[^!-9;<>-\[\]-~]|^[#!]")  # also = : and the blank


def read_properties(data: bytes) -> dict[str, str]:
    """Read names and values. Raises `BodyMalformed` for bad UTF-8 and broken Unicode escapes."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BodyMalformed("properties", f"not UTF-8 at byte {error.start}") from None
    result: dict[str, str] = {}
    for line in _LINE.finditer(text):
        if line[1]:
            entry = _ENTRY.match(_CONTINUED.sub(_keep, line[1]))
            assert entry is not None  # it matches anything
            result[_unescape(entry["key"])] = _unescape(entry["value"])
    return result


def _keep(found: re.Match[str]) -> str:
    return "" if found["kept"] is None else found[0]


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_one, text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _one(found: re.Match[str]) -> str:
    code: str | None = found["code"]
    if code is None:
        one: str = found["one"]
        return _LETTERS.get(one, one)
    if not _FOUR_DIGITS.fullmatch(code):
        raise BodyMalformed("properties", "a Unicode escape lacks its four digits")
    return chr(int(code, 16))


def write_properties(properties: Mapping[str, str]) -> bytes:
    """Write names and values, one a line, so that Java and PocketMQ read them back unchanged."""
    lines = [
        f"{_UNSAFE_IN_KEY.sub(_escape, key)}={_escape_value(value)}\n"
        for key, value in properties.items()
    ]
    return "".join(lines).encode()


def _escape_value(value: str) -> str:
    escaped = _UNSAFE.sub(_escape, value)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if character in _WRITTEN:
        return _WRITTEN[character]
    if character in "=: #!":
        return "\\" + character
    units = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


PROPERTIES_TEXT: Form[Mapping[str, str]] = Form(
    "properties text", write_properties, read_properties
)
