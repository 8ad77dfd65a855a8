"""Ext fields as typed values: how a header is read from a command and written into one.

Owns Java's rules for turning strings into fields and back. The requests themselves are in
`pocketmq.protocol.requests`. Independent of frames: a command hands over the mapping and gets a
value. (It may also read JSON text straight into the class with msgspec's lax decoder.)
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Self, get_args

from msgspec import Meta, Struct
from msgspec.structs import astuple, fields

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
        """Read the fields as Java does; keys this header does not have are ignored.

        Raises `HeaderMalformed` for a missing field, or a number that is invalid or out of range.
        A boolean is never wrong: all but "true", in any case, is false.
        """
        values: dict[str, Any] = {}
        for wire, name, read, required in _readers(cls):
            text = ext.get(wire)
            if text is None:
                if required:
                    raise HeaderMalformed(
                        f"{cls.__name__} has no field {wire!r}, which is required"
                    )
                continue
            if read is not None:
                value = read(text)
                if value is None:
                    raise HeaderMalformed(
                        f"{cls.__name__} has an invalid value in field {wire!r}: {text[:40]!r}"
                    )
                values[name] = value
            else:
                values[name] = text
        return cls(**values)

    def to_ext(self) -> dict[str, str]:
        """Write the fields as strings, always in the same order; None is left out."""
        return {
            wire: value
            if type(value) is str
            else ("true" if value is True else "false" if value is False else str(value))
            for wire, value in zip(self.__struct_encode_fields__, astuple(self), strict=False)
            if value is not None
        }


class RpcHeader(Header, frozen=True, kw_only=True):
    """What any 5.x request may carry besides its own fields; 4.9.5 and later know `bname`."""

    ns: str | None = None  # namespace of the names in this request
    nsd: bool | None = None  # whether the names already contain it
    bname: str | None = None  # the broker meant, by name
    oway: bool | None = None  # whether no response is expected


class TopicHeader(RpcHeader, frozen=True, kw_only=True):
    """What any 5.x request about a topic may carry."""

    lo: bool | None = None  # whether queue ids count the static topic's logical queues


class EmptyResponse(Header, frozen=True, kw_only=True):
    """An answer for which Java writes an empty mapping rather than none."""


_Reader = Callable[[str], Any]


@cache
def _readers(cls: type[Header]) -> tuple[tuple[str, str, _Reader | None, bool], ...]:
    """Return each field's wire name, name, reader, and whether it is needed."""
    return tuple((f.encode_name, f.name, _reader(f.type), f.required) for f in fields(cls))


def _reader(kind: Any) -> _Reader | None:
    for each in (kind, *get_args(kind)):
        if each in _READERS:
            return _READERS[each]
    raise TypeError(f"a header cannot hold {kind}")


def _read_bool(text: str) -> bool:
    return text.lower() == "true"


def read_int32(text: str) -> int | None:
    """Read a Java `int` as `Integer.parseInt` does; None if it is not one."""
    value = _read_integer(text)
    return value if value is not None and -(2**31) <= value < 2**31 else None


def read_int64(text: str) -> int | None:
    """Read a Java `long` as `Long.parseLong` does; None if it is not one."""
    value = _read_integer(text)
    return value if value is not None and -(2**63) <= value < 2**63 else None


def _read_integer(text: str) -> int | None:
    """Read digits with an optional sign, where Python itself would also take ` 1_0 `."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or len(digits) > _LONGEST_NUMBER:
        return None
    return int(text)


_LONGEST_NUMBER = 64  # long before parsing grows quadratic, with space for leading zeros
_READERS: dict[Any, _Reader | None] = {
    str: None,
    bool: _read_bool,
    Int32: read_int32,
    Int64: read_int64,
}
