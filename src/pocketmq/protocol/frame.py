"""Frames: how a byte stream is cut into headers and bodies, and joined again.

Owns the eight-byte prefix and its limits. Independent of what a header or a body means, and
of sockets: bytes come in as they arrive, whole frames go out.

    length:int32 = 4 + header + body | serialise type:uint8 | header length:uint24 | header | body
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import TypeAlias

import msgspec

from pocketmq.errors import FrameMalformed, FrameTooLarge, ProtocolError

FRAME_LIMIT = 16 * 1024 * 1024
"""The largest frame Java accepts by default, its length field included."""

HEADER_LIMIT = 0xFFFFFF
"""The largest header: its length has 24 bits."""

Buffer: TypeAlias = bytes | bytearray | memoryview

_PREFIX = struct.Struct(">II")
PREFIX_SIZE = _PREFIX.size
"""Bytes that tell how long a frame and its header are."""

_LENGTH_LIMIT = 0x7FFFFFFF
WORD_LIMIT = 0x1FFFFFF
"""The second word of a prefix at most: the last known serialise type with the largest header."""

_pack_prefix = _PREFIX.pack
unpack_prefix = _PREFIX.unpack_from


class SerializeType(IntEnum):
    """How a header is written. The type travels in every frame and may differ between them."""

    JSON = 0
    ROCKETMQ = 1


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One frame. A body of no bytes and no body are the same thing on the wire."""

    serialize: int
    header: bytes
    body: bytes


class FrameReader:
    """Cuts one connection's bytes into frames, however the bytes are split.

    Lengths are checked as soon as they are read, before anything is kept for them, and no more
    is ever buffered than the frame in progress declares.
    """

    __slots__ = ("_limit", "failure", "unfinished", "wanted")

    def __init__(self, limit: int = FRAME_LIMIT) -> None:
        self._limit = limit
        # Attributes, not properties: a connection reads them with every read.
        self.unfinished = bytearray()
        """The bytes of an unfinished frame."""
        self.wanted = 0
        """The size of the unfinished frame in bytes, once its prefix has been checked; 0 before."""
        self.failure: ProtocolError | None = None
        """The error that broke the stream, if any: nothing more can be read from it."""

    @property
    def buffered(self) -> int:
        """The number of buffered bytes of an unfinished frame."""
        return len(self.unfinished)

    @property
    def missing(self) -> int:
        """The number of bytes missing from the unfinished frame; 0 if unknown."""
        return self.wanted - len(self.unfinished) if self.wanted else 0

    def clear(self) -> None:
        """Forget the unfinished frame: the stream has ended."""
        self.unfinished = bytearray()
        self.wanted = 0

    @property
    def missing_prefix(self) -> int:
        """The number of bytes missing until the lengths of the unfinished frame are known."""
        return max(0, PREFIX_SIZE - len(self.unfinished))

    @property
    def missing_head(self) -> int:
        """The number of bytes missing until the body of the unfinished frame; 0 if unknown.

        A body that is fed alone, and whole, is returned as it is, without a copy.
        """
        if not self.wanted:
            return 0
        header: int = unpack_prefix(self.unfinished)[1] & HEADER_LIMIT
        return max(0, PREFIX_SIZE + header - len(self.unfinished))

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes of the stream and return the frames they complete.

        Frames that came before broken bytes are still returned. Then `failure` is set at once, and
        the error is raised by this call if it has no frames to return, and by every later one.

        Raises `FrameTooLarge` for a frame over the limit and `FrameMalformed` for a prefix that
        contradicts itself.
        """
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        frames: list[Frame] = []
        position = 0
        if self.wanted:
            position = self._resume(data, frames)
        elif self.unfinished:  # part of a prefix: too little for a path of its own
            data = bytes(self.unfinished) + data
            self.unfinished.clear()
        size = len(data)
        limit = self._limit
        while size - position >= PREFIX_SIZE:
            length, word = unpack_prefix(data, position)
            start = position + 8
            body_start = start + (word & HEADER_LIMIT)
            end = position + 4 + length
            if body_start > end or length > limit - 4 or word > WORD_LIMIT:
                return self._fail(_prefix_error(length, word, limit), frames)
            if end > size:
                self.wanted = length + 4
                break
            frames.append(Frame(word >> 24, data[start:body_start], data[body_start:end]))
            position = end
        if position < size:
            return self._keep(data[position:], frames)
        return frames

    def _keep(self, rest: bytes, frames: list[Frame]) -> list[Frame]:
        """Keep the start of a frame, unless its length is already invalid."""
        if 4 <= len(rest) < PREFIX_SIZE:
            length = int.from_bytes(rest[:4], "big")
            if length < 4 or length + 4 > self._limit:
                return self._fail(_prefix_error(length, 0, self._limit), frames)
        self.unfinished += rest
        return frames

    def _fail(self, failure: ProtocolError, frames: list[Frame]) -> list[Frame]:
        """Remember what broke the stream; raise it unless there are frames to return first."""
        self.failure = failure
        self.unfinished.clear()
        if not frames:
            raise failure
        return frames

    def _resume(self, data: bytes, frames: list[Frame]) -> int:
        """Add the missing bytes of the buffered frame; return how many of `data` that took."""
        unfinished = self.unfinished
        missing = self.wanted - len(unfinished)
        if missing > len(data):
            unfinished += data
            return len(data)
        word = unpack_prefix(unfinished)[1]
        body_start = PREFIX_SIZE + (word & HEADER_LIMIT)
        if len(unfinished) < body_start:
            unfinished += data[:missing]
            rest = b""
        else:  # nearly always only the end of the body is missing: it is copied once
            rest = data[:missing]
        with memoryview(unfinished) as view:
            header = bytes(view[PREFIX_SIZE:body_start])
            body = b"".join((view[body_start:], rest)) if len(unfinished) > body_start else rest
        frames.append(Frame(word >> 24, header, body))
        self.unfinished = bytearray()
        self.wanted = 0
        return missing


def _prefix_error(length: int, word: int, limit: int) -> ProtocolError:
    """Return the error of a malformed prefix, the most basic one first."""
    if length > _LENGTH_LIMIT:
        return FrameMalformed(f"negative length {length - 2**32}")
    if length < 4:
        return FrameMalformed(f"length {length} is too short for a header")
    if length + 4 > limit:
        return FrameTooLarge(length + 4, limit)
    if word >> 24 > SerializeType.ROCKETMQ:
        return FrameMalformed(f"unknown serialise type {word >> 24}")
    header = word & HEADER_LIMIT
    return FrameMalformed(f"header of {header} bytes in a frame of length {length}")


def encode_frame(serialize: int, header: bytes, body: Buffer = b"") -> bytes:
    """Join header and body to one frame.

    Raises `FrameTooLarge` for a header or a frame whose length the prefix cannot hold; what the
    peer accepts (usually `FRAME_LIMIT`) is for the caller to know.
    """
    return _prefix(serialize, len(header), len(body)) + header + body


def encode_frame_pieces(serialize: int, header: bytes, bodies: Sequence[Buffer]) -> list[Buffer]:
    """Return a frame as pieces for a vectored write: prefix and header, then `bodies` uncopied.

    Raises `FrameTooLarge` as `encode_frame` does.
    """
    size = sum(memoryview(body).nbytes for body in bodies)
    return [_prefix(serialize, len(header), size) + header, *bodies]


def _prefix(serialize: int, header_size: int, body_size: int) -> bytes:
    if header_size > HEADER_LIMIT:
        raise FrameTooLarge(header_size, HEADER_LIMIT)
    length = 4 + header_size + body_size
    if length > _LENGTH_LIMIT:
        raise FrameTooLarge(length + 4, _LENGTH_LIMIT)
    return _pack_prefix(length, serialize << 24 | header_size)
