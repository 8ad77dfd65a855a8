r"""The property text of a message: `name \x01 value \x02`, again and again, in UTF-8.

Some RocketMQ versions leave out the last `\x02`; both forms are read, the full one is written.
"""

from collections.abc import Mapping
from functools import lru_cache

from pocketmq.errors import InvalidInput

LIMIT = 32767
"""Bytes that a message's properties may have: their length travels as a signed 16-bit number."""

_TOO_LONG = "the properties take {} bytes, 32767 are allowed"


def encode_properties(properties: Mapping[str, str | None]) -> bytes:
    """Write properties. A value of None is left out, an empty one is kept, as Java does.

    Readers drop empty values. Raises `InvalidInput` for an empty name, a separator where it would
    change what is read back, text that UTF-8 cannot hold, or more than `LIMIT` bytes.
    """
    pairs = [(name, value) for name, value in properties.items() if value is not None]
    text = "".join([f"{name}\x01{value}\x02" for name, value in pairs])
    if not text.count("\x01") == text.count("\x02") == len(pairs) or "" in properties:
        _check(pairs)
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("a property contains half of a surrogate pair") from error
    if len(raw) > LIMIT:
        raise InvalidInput(_TOO_LONG.format(len(raw)))
    return raw


def _check(pairs: list[tuple[str, str]]) -> None:
    r"""Refuse what would be read back differently. `\x01` inside a value is no separator."""
    for name, value in pairs:
        if not name:
            raise InvalidInput("a property name must not be empty")
        if "\x01" in name or "\x02" in name or "\x02" in value:
            raise InvalidInput(f"property {name!r} contains a separator character (\\x01 or \\x02)")


def decode_properties(raw: bytes) -> dict[str, str]:
    """Read properties by Java's rules; nothing is an error.

    Pieces without a name or a value are dropped, of several values the last counts, and bytes
    that are not UTF-8 become U+FFFD.
    """
    found = {}
    for piece in raw.decode("utf-8", "replace").split("\x02"):
        name, _, value = piece.partition("\x01")
        if name and value:
            found[name] = value
    return found


def find_property(raw: bytes, name: bytes, start: int = 0, end: int | None = None) -> bytes | None:
    """Return what `decode_properties` would return for one name, without reading the others.

    The properties may lie anywhere in a larger buffer, from `start` to `end`.
    """
    later, first = _needles(name)
    stop = end = len(raw) if end is None else end
    while (at := raw.rfind(later, start, stop)) >= 0:
        value_at = at + len(later)
        value_end = raw.find(b"\x02", value_at, end)
        if value := raw[value_at : end if value_end < 0 else value_end]:
            return value
        stop = at  # an empty value does not count, an earlier one may
    if raw.startswith(first, start, end):
        value_at = start + len(first)
        value_end = raw.find(b"\x02", value_at, end)
        return raw[value_at : end if value_end < 0 else value_end] or None
    return None


@lru_cache(maxsize=256)
def _needles(name: bytes) -> tuple[bytes, bytes]:
    """Return what a property begins with: behind another one, and as the first."""
    return b"\x02%b\x01" % name, b"%b\x01" % name


def append_property(raw: bytes, name: str, value: str) -> bytes:
    """Add one property after the others, which stay as they are; it wins over earlier ones.

    Raises `InvalidInput` as `encode_properties` does.
    """
    separator = b"" if not raw or raw.endswith(b"\x02") else b"\x02"
    longer = raw + separator + encode_properties({name: value})
    if len(longer) > LIMIT:
        raise InvalidInput(_TOO_LONG.format(len(longer)))
    return longer
