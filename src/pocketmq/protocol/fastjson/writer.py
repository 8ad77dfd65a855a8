"""Writes values in the form every RocketMQ release reads.

Strings are escaped as fastjson 1.x does it, which fastjson 2 and standard readers accept too.
References are never written.
"""

import re
from collections.abc import Callable
from enum import Enum, Flag
from math import isfinite
from typing import Any

from pocketmq.errors import InvalidInput

MAX_DEPTH = 64
"""How deep values may nest. RocketMQ's own bodies stay below ten levels."""


class ObjectKey(str):
    """A map key that is an object: its JSON text, written without quotes.

    Equal to the plain string, so that a key reads the same whether the peer wrote it as an object
    or as a string that holds JSON.
    """

    __slots__ = ()


def dumps(value: Any, *, ascii_only: bool = False, bare_integer_keys: bool = False) -> bytes:
    """Write builtin values as UTF-8 text; enums go by name, entries that are None are left out.

    Integer keys are quoted unless `bare_integer_keys`, which is what name servers send to clients
    before 4.9.4. `ascii_only` escapes everything else, as their answers to later clients are.
    Raises `InvalidInput` for values JSON cannot hold and for nesting beyond `MAX_DEPTH`.
    """
    writer = _Writer(_escape_ascii if ascii_only else _escape, bare_integer_keys=bare_integer_keys)
    writer.write(value, 0)
    return "".join(writer.parts).encode()


_SPECIAL = re.compile('[\\x00-\\x1f"\\\\\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff]')
# By what is harmless: a class that names all the rest takes Python 15 ms to compile.
_SPECIAL_ASCII = re.compile(r"[^ !#-\[\]-~]")
_NOT_ASCII = re.compile(r"[^\x00-~]")
_NAMED = {
    "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\",
}  # fmt: skip


def _escape_one(match: re.Match[str]) -> str:
    character = match[0]
    if named := _NAMED.get(character):
        return named
    code = ord(character)
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"
    if 0xD800 <= code < 0xE000:
        return "?"  # half a character; Java's own UTF-8 writes the same
    return f"\\u{code:04X}"


def _escape(text: str) -> str:
    return _SPECIAL.sub(_escape_one, text) if _SPECIAL.search(text) else text


def _escape_ascii(text: str) -> str:
    return _SPECIAL_ASCII.sub(_escape_one, text) if _SPECIAL_ASCII.search(text) else text


def quote(text: str) -> str:
    """Return one string as JSON."""
    return f'"{_escape(text)}"'


def java_double(number: float) -> str:
    """Return Java's `Double.toString`, or `null` for what JSON has no word for."""
    if not isfinite(number):
        return "null"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    digits, exponent = f"{number!r}".partition("e")[::2]
    if exponent:
        return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"
    whole, _, fraction = digits.partition(".")
    sign, whole = ("-", whole[1:]) if whole[0] == "-" else ("", whole)
    together = (whole + fraction).lstrip("0")
    power = len(whole) - 1 if whole != "0" else len(together) - len(fraction) - 1
    mantissa = together.rstrip("0") or "0"
    return f"{sign}{mantissa[0]}.{mantissa[1:] or '0'}E{power}"


class _Writer:
    """One text being built, part by part."""

    __slots__ = ("bare_integer_keys", "escape", "parts")

    def __init__(self, escape: Callable[[str], str], *, bare_integer_keys: bool) -> None:
        self.escape = escape
        self.bare_integer_keys = bare_integer_keys
        self.parts: list[str] = []

    def write(self, value: Any, depth: int) -> None:
        kind = type(value)
        if kind is str:
            self.parts.append(f'"{self.escape(value)}"')
        elif kind is int:
            self.parts.append(str(value))
        elif kind is bool:
            self.parts.append("true" if value else "false")
        elif kind is dict or kind is list or kind is tuple:
            if depth == MAX_DEPTH:
                raise InvalidInput(f"a body nests deeper than {MAX_DEPTH} levels")
            if kind is dict:
                self._write_map(value, depth + 1)
            else:
                self._write_list(value, depth + 1)
        else:
            self.parts.append(self._rare(value))

    def _write_map(self, value: dict[Any, Any], depth: int) -> None:
        parts = self.parts
        separator = "{"
        for key, item in value.items():
            if item is None:
                continue
            parts.append(separator)
            separator = ","
            parts.append(self._key(key))
            self.write(item, depth)
        parts.append("}" if separator == "," else "{}")

    def _write_list(self, value: list[Any] | tuple[Any, ...], depth: int) -> None:
        parts = self.parts
        separator = "["
        for item in value:
            parts.append(separator)
            separator = ","
            self.write(item, depth)
        parts.append("]" if separator == "," else "[]")

    def _key(self, key: Any) -> str:
        kind = type(key)
        if kind is str:
            return f'"{self.escape(key)}":'
        if kind is ObjectKey:
            text = str(key)
            return f"{text if self.escape is _escape else _NOT_ASCII.sub(_escape_one, text)}:"
        if kind is int:
            return f"{key}:" if self.bare_integer_keys else f'"{key}":'
        if isinstance(key, Enum):
            return f'"{key.name}":'
        raise InvalidInput(f"{kind.__name__} cannot be a map key of a body")

    def _rare(self, value: Any) -> str:
        if value is None:
            return "null"
        if isinstance(value, float):
            return java_double(value)
        if isinstance(value, Enum) and not isinstance(value, Flag):
            return f'"{value.name}"'
        if isinstance(value, int):
            return str(int(value))
        if isinstance(value, str):
            return f'"{self.escape(str(value))}"'
        raise InvalidInput(f"{type(value).__name__} cannot be written to a body")
