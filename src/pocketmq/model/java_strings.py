"""Java's view of text: hash codes, ordering and `split`, which RocketMQ's rules rest on.

Java strings are sequences of UTF-16 units. Hash codes and comparison see those units, not code
points, so both differ from Python's own for characters outside the basic plane.
"""

from functools import lru_cache


def int32(value: int) -> int:
    """Wrap a number into Java's `int`."""
    return (value + 0x8000_0000 & 0xFFFF_FFFF) - 0x8000_0000


_REMEMBERED = 256  # longer texts are rare, and caching them would fill the memory


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode()`, a signed 32-bit number."""
    return _remembered_hash(text) if len(text) <= _REMEMBERED else _hash(text)


def _hash(text: str) -> int:
    result = 0
    if text.isascii():
        for unit in text.encode():
            result = 31 * result + unit & 0xFFFF_FFFF
    else:
        raw = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(raw[::2], raw[1::2], strict=True):
            result = 31 * result + (high << 8 | low) & 0xFFFF_FFFF
    return int32(result)


_remembered_hash = lru_cache(maxsize=4096)(_hash)


def java_order(text: str) -> bytes:
    """Return a sort key that orders as Java's `String.compareTo` does.

    Code points beyond U+FFFF are surrogate pairs to Java and sort before U+E000, unlike in Python.
    """
    return text.encode("utf-16-be", "surrogatepass")


def java_sorted(texts: list[str] | tuple[str, ...] | set[str] | frozenset[str]) -> list[str]:
    """Sort strings as Java's `Collections.sort` does."""
    if all(text.isascii() for text in texts):
        return sorted(texts)
    return sorted(texts, key=java_order)


def java_split(text: str, separator: str) -> list[str]:
    """Split at a literal separator as Java's `String.split` does.

    Trailing empty parts are dropped, leading ones stay, and a text without the separator is
    returned whole, even when it is empty.
    """
    if separator not in text:
        return [text]
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts
