"""Ext fields as typed values: how a header is read from a command and written into one.

Owns Java's rules for turning strings into fields and back. Knows no single request: those are in
`pocketmq.protocol.headers`. Knows nothing of frames either; a command hands over the mapping, or
the JSON text of it, and gets a value.
"""

from collections.abc import Callable, Mapping
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, Self, get_args

import msgspec
from msgspec import Meta, Struct

from pocketmq.errors import HeaderMalformed

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""A Java `int`."""
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""A Java `long`."""


class Header(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The ext fields of one kind of request or response.

    Fields are `str`, `bool`, `Int32` or `Int64`, or one of them or None. A field without a default
    is one its request cannot do without. Wire names are Java's field names.
    """

    @classmethod
    def from_ext(cls, ext: Mapping[str, str]) -> Self:
        """Read the fields as Java does; keys this header does not know are passed over.

        Raises `HeaderMalformed` for a missing field, or a number that is none or out of range.
        A boolean is never wrong: all but "true", in any case, is false.
        """
        values: dict[str, Any] = {}
        for wire, name, read, required in _plan(cls).readers:
            text = ext.get(wire)
            if text is None:
                if required:
                    raise HeaderMalformed(f"{cls.__name__} lacks {wire!r}")
                continue
            if read is not None:
                value = read(text)
                if value is None:
                    raise HeaderMalformed(f"{wire!r} of {cls.__name__} cannot be {text[:40]!r}")
                values[name] = value
            else:
                values[name] = text
        return cls(**values)

    @classmethod
    def from_json(cls, ext: bytes | bytearray | memoryview | msgspec.Raw) -> Self:
        """Read the fields from the JSON object that holds them; the fast way in.

        Values may be strings, as RocketMQ's own peers write them, or bare numbers and booleans,
        as some minimal clients do. Raises `HeaderMalformed` as `from_ext` does, and for text that
        is no JSON object. One thing is read more kindly than by `from_ext`: "1" is true, too.
        """
        try:
            header: Self = _plan(cls).decode(ext)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return cls.from_ext(_loose_ext(ext, cls))
        return header

    def to_ext(self) -> dict[str, str]:
        """Write the fields as strings, always in the same order; None is left out."""
        wires, values = _plan(type(self)).writers
        return {
            wire: value
            if type(value) is str
            else ("true" if value is True else "false" if value is False else str(value))
            for wire, value in zip(wires, values(self), strict=False)
            if value is not None
        }


class RpcHeader(Header, frozen=True, kw_only=True):
    """What any 5.x request may carry besides its own fields; 4.9.5 and later know `bname`."""

    ns: str | None = None  # namespace of the names in this request
    nsd: bool | None = None  # whether the names already contain it
    bname: str | None = None  # the broker meant, by name
    oway: bool | None = None  # whether an answer is unwanted


class TopicHeader(RpcHeader, frozen=True, kw_only=True):
    """What any 5.x request about a topic may carry."""

    lo: bool | None = None  # whether queue ids count the static topic's logical queues


class EmptyResponse(Header, frozen=True, kw_only=True):
    """An answer for which Java writes an empty mapping rather than none."""


_Reader = Callable[[str], Any]


class _Plan(NamedTuple):
    """What reading and writing one class needs, worked out once."""

    readers: tuple[tuple[str, str, _Reader | None, bool], ...]
    writers: tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]
    decode: Callable[[Any], Any]


@cache
def _plan(cls: type[Any]) -> _Plan:
    fields = msgspec.structs.fields(cls)
    names = tuple(field.name for field in fields)
    return _Plan(
        tuple((f.encode_name, f.name, _reader(f.type), f.required) for f in fields),
        (tuple(field.encode_name for field in fields), _getter(names)),
        msgspec.json.Decoder(cls, strict=False).decode,
    )


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Give a function to a header's values; `attrgetter` makes a tuple of two and more only."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda header: tuple(getattr(header, name) for name in names)


def _reader(kind: Any) -> _Reader | None:
    for each in (kind, *get_args(kind)):
        if each in _READERS:
            return _READERS[each]
    raise TypeError(f"a header cannot hold {kind}")


def _read_bool(text: str) -> bool:
    return text.lower() == "true"


def _read_int32(text: str) -> int | None:
    value = _read_integer(text)
    return value if value is not None and -(2**31) <= value < 2**31 else None


def _read_int64(text: str) -> int | None:
    value = _read_integer(text)
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _read_integer(text: str) -> int | None:
    """Read digits with an optional sign, as `Long.parseLong`; Python would also take ` 1_0 `."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or len(digits) > _LONGEST_NUMBER:
        return None
    return int(text)


_LONGEST_NUMBER = 64  # long before parsing grows quadratic, with room for leading zeros
_READERS: dict[Any, _Reader | None] = {
    str: None,
    bool: _read_bool,
    Int32: _read_int32,
    Int64: _read_int64,
}
_decode_loosely = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _loose_ext(ext: bytes | bytearray | memoryview | msgspec.Raw, cls: type[Header]) -> Any:
    """Read an object of any JSON scalars as strings, as Java's map of strings takes them in."""
    try:
        raw = _decode_loosely(ext)
        return {key: _text(bytes(value)) for key, value in raw.items()}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HeaderMalformed(f"ext fields of {cls.__name__} are not a JSON object") from error


def _text(value: bytes) -> str | None:
    if value == b"null":
        return None
    if value[:1] == b'"':
        return msgspec.json.decode(value, type=str)
    return value.decode()
