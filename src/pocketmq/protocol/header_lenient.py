"""Java's reading of JSON headers that are not plain: other types, odd strings, broken UTF-8.

Owns the coercions on which fastjson 1.2.69 (RocketMQ 4.9) and fastjson2 (5.5) agree: numbers,
booleans and nulls for strings and the reverse, raw control characters, lone surrogates. Text that
is not JSON (comments, single quotes, trailing commas …) is malformed here though they take some
of it: no known peer writes it. Slow, and used only for what the quick reader refuses.
"""

import json
import re
from typing import Any, Never

from pocketmq.errors import HeaderMalformed
from pocketmq.protocol.peers import Language

LENIENT_LIMIT = 64 * 1024
"""The most text read this way: peers with odd headers have small ones."""

_DEPTH_LIMIT = 32
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII).fullmatch
_NEGATIVE_ZERO = re.compile(r"-0(\.0+)?", re.ASCII).fullmatch


class _Number(str):
    """A JSON number as its peer wrote it, distinct from a string."""

    __slots__ = ()


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    strict=False, parse_int=_Number, parse_float=_Number, parse_constant=_refuse_constant
)


def load_json(text: bytes) -> Any:
    """Parse JSON, numbers kept as they are written. Raises `HeaderMalformed`."""
    if len(text) > LENIENT_LIMIT:
        raise HeaderMalformed(f"{len(text)} bytes that are not plain JSON")
    try:
        return _DECODER.decode(text.decode("utf-8", "replace"))
    except RecursionError:
        raise HeaderMalformed("nested too deeply") from None
    except ValueError as error:
        raise HeaderMalformed(f"not JSON: {error}") from None


def as_int32(key: str, value: object) -> int:
    """Read an int as fastjson does: null and "" are 0, true is 1, fractions are cut off.

    Raises `HeaderMalformed` for what is not a number or out of range.
    """
    number: float | None = None
    if value is None or value in ("", "null"):
        return 0
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and _INTEGER(value):
        number = int(value)
    elif isinstance(value, _Number):
        number = float(value)
    if number is None or not -(2**31) <= number < 2**31:
        raise HeaderMalformed(f"{key} is not a 32-bit integer: {_shortened(value)}")
    return int(number)


def as_string(value: object, depth: int = 0) -> str:
    """Read a value as the string Java makes of it; arrays and objects become their JSON.

    Numbers keep their spelling; the two Javas differ in how they respell exponents.
    """
    if isinstance(value, _Number):
        return value[1:] if _NEGATIVE_ZERO(value) else str(value)
    if isinstance(value, str):
        return sound_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if depth > _DEPTH_LIMIT:
        raise HeaderMalformed("nested too deeply")
    if isinstance(value, list):
        return f"[{','.join(_nested(item, depth) for item in value)}]"
    if isinstance(value, dict):
        members = (
            f"{_nested(key, depth)}:{_nested(item, depth)}"
            for key, item in value.items()
            if item is not None
        )
        return f"{{{','.join(members)}}}"
    return "null"


def as_strings(fields: object) -> dict[str, str] | None:
    """Read `extFields`: nulls are left out, all other values become strings.

    Raises `HeaderMalformed` for anything but an object or null.
    """
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise HeaderMalformed(f"extFields is not an object: {_shortened(fields)}")
    return {sound_text(key): as_string(value) for key, value in fields.items() if value is not None}


def as_language(value: object) -> Language | None:
    """Read a language as Java reads an enum: a name in any case, or its index.

    An unknown name is null; an index that does not exist raises `HeaderMalformed`.
    """
    if value is None:
        return None
    if isinstance(value, _Number) and _INTEGER(value):
        try:
            return Language(int(value))
        except ValueError:
            pass
    elif isinstance(value, str) and not isinstance(value, _Number):
        return Language.__members__.get(value.upper())
    raise HeaderMalformed(f"unknown language: {_shortened(value)}")


def sound_text(text: str) -> str:
    """Put `?` for lone surrogates, as Java does when it writes them as UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _nested(value: object, depth: int) -> str:
    if isinstance(value, str) and not isinstance(value, _Number):
        return json.dumps(sound_text(value), ensure_ascii=False)
    return as_string(value, depth + 1)


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
