r"""The properties of many messages as columns: offsets and texts, without an object for each.

The rules are those of `property_text`: pieces without a name or a value are dropped, of several
values the last counts, `\x01` inside a value belongs to it.
"""

from array import array
from typing import NamedTuple

from pocketmq.native import in_core

_MOST = 0x7FFF_FFFF


class Texts(NamedTuple):
    """Texts one after the other: text n is `text[offsets[n]:offsets[n + 1]]`."""

    offsets: bytes
    """32-bit numbers of this machine, one more than there are texts."""
    text: bytes
    present: bytes
    """A bit for each text, the lowest first: whether there is one. Empty if there are all."""


class Pairs(NamedTuple):
    """The properties of each message: those of message n are `firsts[n]` to `firsts[n + 1]`."""

    firsts: bytes
    """32-bit numbers of this machine, one more than there are messages."""
    names: Texts
    values: Texts


class SplitProperties(NamedTuple):
    """A column for each name that was wanted, and all others as pairs."""

    columns: list[Texts]
    others: Pairs | None


@in_core
def split_properties(
    data: bytes,
    starts: bytes,
    ends: bytes,
    wanted: tuple[bytes, ...],
    left_out: tuple[bytes, ...] | None,
) -> SplitProperties | None:
    """Return the properties of messages; None if any is not ASCII, or all together are over 2 GiB.

    `starts` and `ends` are the bounds of their property texts in `data`, as 64-bit numbers of this
    machine. `left_out` are the names that pairs leave out; without it there are no pairs.
    """
    places = list(zip(array("q", starts), array("q", ends), strict=True))
    texts = [data[start:end] for start, end in places]
    if sum(map(len, texts)) > _MOST or not all(map(bytes.isascii, texts)):
        return None
    rows = [_properties(text) for text in texts]
    columns = [_texts([row.get(name) for row in rows]) for name in wanted]
    if left_out is None:
        return SplitProperties(columns, None)
    firsts, names, values = [0], list[bytes](), list[bytes]()
    for row in rows:
        kept = [name for name in row if name not in left_out]
        names += kept
        values += [row[name] for name in kept]
        firsts.append(len(names))
    pairs = Pairs(array("i", firsts).tobytes(), _texts(names), _texts(values))
    return SplitProperties(columns, pairs)


def _properties(text: bytes) -> dict[bytes, bytes]:
    """Return the properties of one message, in the order of their last values."""
    found: dict[bytes, bytes] = {}
    for piece in text.split(b"\x02"):
        name, _, value = piece.partition(b"\x01")
        if name and value:
            found.pop(name, None)
            found[name] = value
    return found


def _texts(values: list[bytes] | list[bytes | None]) -> Texts:
    offsets, present = [0], bytearray((len(values) + 7) // 8)
    for at, value in enumerate(values):
        offsets.append(offsets[-1] + len(value or b""))
        if value is not None:
            present[at // 8] |= 1 << at % 8
    text = b"".join([value for value in values if value is not None])
    return Texts(array("i", offsets).tobytes(), text, bytes(present) if None in values else b"")
