"""Commands: one request or response as a value, read from a frame and written to one.

Owns what both serialisations have in common: flags, opaque numbers, replies, and the typed view
of a header's fields. Independent of particular codes, and of connections.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, Self, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Raw

from pocketmq.protocol.frame import Buffer, Frame, SerializeType, encode_frame, encode_frame_pieces
from pocketmq.protocol.header import Header
from pocketmq.protocol.header_binary import read_binary_header, write_binary_header
from pocketmq.protocol.header_json import (
    LANGUAGE_NAMES,
    REFUSALS,
    read_ext,
    read_json_header,
    write_json_header,
)
from pocketmq.protocol.peers import CURRENT_VERSION, Language

RESPONSE_FLAG = 1
ONEWAY_FLAG = 2

_JSON = int(SerializeType.JSON)


H = TypeVar("H", bound=Header)


class Command(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A request or a response.

    `body` is never None: no body and an empty one are the same bytes on the wire (Java reads
    both as null). `language` is None for one we have no name for. `ext_fields` is what the
    header carried, possibly still unread: read it through `ext` or `header`.
    """

    code: int
    opaque: int
    flag: int = 0
    language: Language | None = Language.PYTHON
    version: int = CURRENT_VERSION
    remark: str | None = None
    ext_fields: dict[str, str] | Raw | None = None
    body: bytes = b""
    serialize: int = _JSON

    @classmethod
    def request(
        cls,
        code: int,
        opaque: int,
        ext: Mapping[str, str] | Header | None = None,
        body: bytes = b"",
        *,
        oneway: bool = False,
        serialize: int = _JSON,
    ) -> Self:
        """Build a request of this process; `ext` is a typed header or plain fields."""
        return cls(
            code,
            opaque,
            flag=ONEWAY_FLAG if oneway else 0,
            ext_fields=_as_fields(ext),
            body=body,
            serialize=serialize,
        )

    def reply(
        self,
        code: int,
        remark: str | None = None,
        ext: Mapping[str, str] | Header | None = None,
        body: bytes = b"",
    ) -> Self:
        """Build the response to this request: same opaque, same serialisation."""
        return type(self)(
            code,
            self.opaque,
            flag=RESPONSE_FLAG,
            remark=remark,
            ext_fields=_as_fields(ext),
            body=body,
            serialize=self.serialize,
        )

    @property
    def is_response(self) -> bool:
        """Whether this is the response to a request."""
        return self.flag & RESPONSE_FLAG != 0

    @property
    def is_oneway(self) -> bool:
        """Whether the sender expects no response."""
        return self.flag & ONEWAY_FLAG != 0

    @property
    def size(self) -> int:
        """The approximate size of fields, remark and body in bytes."""
        fields = self.ext_fields
        if type(fields) is Raw:
            size = memoryview(fields).nbytes
        else:
            size = 0 if fields is None else len("".join(fields)) + len("".join(fields.values()))
        return size + len(self.remark or "") + len(self.body)

    @property
    def ext(self) -> dict[str, str]:
        """All fields as strings, in the order they came in. Do not change it.

        Raises `HeaderMalformed` if they were not an object.
        """
        fields = self._fields()
        return {} if fields is None else fields

    def header(self, kind: type[H]) -> H:
        """Read the fields as `kind`, the quick way if they are still raw JSON.

        Raises `HeaderMalformed`, naming the field, for one that is missing or of another type.
        The quick way is kinder than Java in one thing: a whole number may be spelled `1.0`, and
        `null` is none.
        """
        raw = self.ext_fields
        if type(raw) is not Raw:
            return kind.from_ext(self.ext)
        try:
            decode, booleans, keys = _READERS[kind]
        except KeyError:
            decode, booleans, keys = _reader(kind)
        try:
            header: H = decode(raw)
        except REFUSALS:
            return kind.from_ext(self.ext)
        # msgspec takes "1" for true, Java takes "true" alone.
        if (
            booleans is not None
            and any(booleans(header))
            and not _java_agrees(header, keys, self.ext)
        ):
            return kind.from_ext(self.ext)
        return header

    def encode(self) -> bytes:
        """Write the whole frame.

        Raises `FrameTooLarge` for what no prefix can hold, and `HeaderMalformed` for numbers the
        serialisation cannot hold.
        """
        return encode_frame(self.serialize, self._encode_header(), self.body)

    def encode_pieces(self, tail: Sequence[Buffer] = ()) -> list[Buffer]:
        """Write the frame as pieces for a vectored write; `tail` follows the body, uncopied.

        Raises what `encode` does.
        """
        bodies = (self.body, *tail) if self.body else tail
        return encode_frame_pieces(self.serialize, self._encode_header(), bodies)

    def _encode_header(self) -> bytes:
        write = write_json_header if self.serialize == _JSON else write_binary_header
        return write(
            self.code,
            self.opaque,
            self.flag,
            self.language,
            self.version,
            self.remark,
            self._fields(),
        )

    def _fields(self) -> dict[str, str] | None:
        """Return the fields, read once; None if the header had none, not even an empty object."""
        fields = self.ext_fields
        if type(fields) is Raw:
            fields = read_ext(fields)
            msgspec.structs.force_setattr(self, "ext_fields", fields)
        return fields

    def __eq__(self, other: object) -> bool:
        """Compare by meaning: unread fields are read, no fields and none set are the same."""
        if not isinstance(other, Command):
            return NotImplemented
        return self._meaning() == other._meaning()

    def __ne__(self, other: object) -> bool:
        return not self == other  # msgspec's own would compare field by field

    __hash__ = None  # type: ignore[assignment]

    def _meaning(self) -> tuple[object, ...]:
        return (
            (self.code, self.opaque, self.flag, self.language, self.version, self.remark),
            (self.ext, self.body, self.serialize),
        )

    def __repr__(self) -> str:
        kind = "response" if self.is_response else "oneway" if self.is_oneway else "request"
        remark = f", {self.remark!r}" if self.remark else ""
        return f"<{kind} {self.code}, opaque {self.opaque}{remark}, {len(self.body)} bytes>"


def read_command(frame: Frame) -> Command:
    """Read a frame's header; JSON fields stay unread until asked for.

    Raises `HeaderMalformed`.
    """
    if frame.serialize == _JSON:
        header = read_json_header(frame.header)
        return Command(
            header.code,
            header.opaque,
            header.flag,
            LANGUAGE_NAMES[header.language],
            header.version,
            header.remark,
            header.ext,
            frame.body,
            _JSON,
        )
    return Command(*read_binary_header(frame.header), frame.body, frame.serialize)


class OpaqueCounter:
    """Numbers for requests: int32, counting up from 0 and past the largest to the smallest."""

    __slots__ = ("take",)

    def __init__(self, start: int = 0) -> None:
        rounds = chain([range(start, 1 << 31)], repeat(range(-1 << 31, 1 << 31)))
        self.take: Callable[[], int] = chain.from_iterable(rounds).__next__
        """Returns the next number; without a Python call, as one is taken per request."""


def _as_fields(ext: Mapping[str, str] | Header | None) -> dict[str, str] | None:
    if ext is None:
        return None
    return ext.to_ext() if isinstance(ext, Header) else dict(ext)


_BooleanKeys: TypeAlias = tuple[tuple[str, str], ...]
# The quick way to one kind of header; its boolean values, if it has some; their names here and on
# the wire.
_Reader: TypeAlias = tuple[
    Callable[[Raw], Any], Callable[[Any], Sequence[object]] | None, _BooleanKeys
]

_READERS: dict[type[Header], _Reader] = {}


def _reader(kind: type[Header]) -> _Reader:
    fields = [
        (field.name, field.encode_name)
        for field in msgspec.structs.fields(kind)
        if bool in (field.type, *get_args(field.type))
    ]
    names = [name for name, _ in fields]
    reader = (
        msgspec.json.Decoder(kind, strict=False).decode,
        # A getter of fewer than two names gives no tuple; naming one twice makes it one.
        attrgetter(*names, names[0]) if names else None,
        tuple(fields),
    )
    _READERS[kind] = reader
    return reader


def _java_agrees(header: Header, keys: _BooleanKeys, ext: Mapping[str, str]) -> bool:
    """Whether every field that is true here is true for Java, too."""
    return all(
        ext.get(key, "true").lower() == "true" for name, key in keys if getattr(header, name)
    )
