"""Compressed message bodies: the three codecs of RocketMQ, and their bits in the system flag.

zlib is always available; lz4 and zstandard are imported when first needed. Nothing is inflated past
a limit the caller names, however large a peer's bytes claim to be.
"""

import zlib
from collections.abc import Callable
from enum import IntEnum

from pocketmq.errors import BodyTooLarge, CodecMissing, InvalidInput, MessageMalformed
from pocketmq.model import COMPRESSION_MASK, SysFlag

DEFAULT_LEVEL = 5
INFLATE_LIMIT = 64 * 1024 * 1024
"""How large a body may become unless the caller says otherwise: 16 times Java's largest."""

_SHIFT = 8
_COMPRESSED = int(SysFlag.COMPRESSED)
_STEP = 1 << 20


class Codec(IntEnum):
    """How a body is compressed, by the number it has in the system flag."""

    LZ4 = 1
    ZSTD = 2
    ZLIB = 3


_PACKAGES = {Codec.LZ4: "lz4", Codec.ZSTD: "zstandard"}

Inflate = Callable[[bytes, int], bytes]
stand_ins: dict[Codec, Inflate] = {}
"""What inflates in place of a package that is not installed; filled by layers that have another.

They take the data and a limit, and raise as `decompress` does.
"""


def codec_of(sys_flag: int) -> Codec | None:
    """Return which codec a system flag names, if the body is compressed at all.

    No type counts as zlib: producers older than the type bits set the first bit alone. Raises
    `MessageMalformed` for an unknown type.
    """
    if not sys_flag & _COMPRESSED:
        return None
    number = (sys_flag & COMPRESSION_MASK) >> _SHIFT
    if number > Codec.ZLIB:
        raise MessageMalformed(f"unknown compression type {number}")
    return Codec(number or Codec.ZLIB)


def mark_compressed(sys_flag: int, codec: Codec) -> int:
    """Return a system flag that says the body is compressed with this codec."""
    return sys_flag & ~COMPRESSION_MASK | codec << _SHIFT | _COMPRESSED


def compress(body: bytes, codec: Codec = Codec.ZLIB, level: int = DEFAULT_LEVEL) -> bytes:
    """Compress a body so that Java reads it. As in Java, LZ4 has no level.

    Raises `CodecMissing` if the codec is not installed, `InvalidInput` for a level it lacks.
    """
    try:
        if codec is Codec.ZLIB:
            return zlib.compress(body, level)
        if codec is Codec.ZSTD:
            return _zstd_compress(body, level)
    except (ValueError, zlib.error) as error:
        raise InvalidInput(f"invalid compression level {level} for {codec.name}") from error
    return _lz4_compress(body)


def decompress(data: bytes, codec: Codec, limit: int = INFLATE_LIMIT) -> bytes:
    """Undo `compress`. What follows the first frame is ignored.

    Raises `BodyTooLarge` if the data is larger than `limit` bytes once inflated, of which no more
    are ever made, `MessageMalformed` if it is broken or cut short, `CodecMissing` if the codec is
    not installed.
    """
    if codec is Codec.ZLIB:
        return _zlib_decompress(data, limit)
    if codec is Codec.ZSTD:
        return _zstd_decompress(data, limit)
    return _lz4_decompress(data, limit)


def decompress_body(body: bytes, sys_flag: int, limit: int = INFLATE_LIMIT) -> bytes:
    """Return a stored body as its sender handed it over; raises what `decompress` raises.

    As in Java an empty body is empty, whatever the flag says.
    """
    codec = codec_of(sys_flag) if body else None
    return body if codec is None else decompress(body, codec, limit)


def body_start(body: bytes, sys_flag: int, size: int) -> bytes:
    """Return the first `size` bytes of a stored body, or all if it has less; no more is inflated.

    Raises `MessageMalformed` if that much of it is broken, `CodecMissing` if the codec is not
    installed.
    """
    codec = codec_of(sys_flag) if body else None
    if codec is None:
        return body[:size]
    try:
        if codec is Codec.ZLIB:
            return zlib.decompressobj().decompress(body, size)
        if codec is Codec.ZSTD:
            import zstandard

            with zstandard.ZstdDecompressor().stream_reader(body) as reader:
                return bytes(reader.read(size))
        import lz4.frame  # type: ignore[import-untyped]

        start: bytes = lz4.frame.LZ4FrameDecompressor().decompress(body, max_length=size)
    except ImportError as error:
        raise CodecMissing(_PACKAGES[codec]) from error
    except Exception as error:  # three codecs, each with errors of its own
        raise _broken(codec, str(error)) from error
    return start


def _broken(codec: Codec, reason: str) -> MessageMalformed:
    return MessageMalformed(f"the body is not valid {codec.name} data: {reason}")


def _zlib_decompress(data: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(data, limit + 1)
    except zlib.error as error:
        raise _broken(Codec.ZLIB, str(error)) from error
    if len(body) > limit:
        raise BodyTooLarge(len(data), limit)
    if not inflater.eof:
        raise _broken(Codec.ZLIB, "it is cut short")
    return body


def _lz4_compress(body: bytes) -> bytes:
    try:
        import lz4.frame
    except ImportError as error:
        raise CodecMissing("lz4") from error
    # Java's reader refuses blocks that depend on each other, the library's own choice.
    packed: bytes = lz4.frame.compress(body, block_linked=False, store_size=False)
    return packed


def _lz4_decompress(data: bytes, limit: int) -> bytes:
    try:
        import lz4.frame
    except ImportError as error:
        if Codec.LZ4 in stand_ins:
            return stand_ins[Codec.LZ4](data, limit)
        raise CodecMissing("lz4") from error
    inflater = lz4.frame.LZ4FrameDecompressor()
    stored = len(data)
    pieces: list[bytes] = []
    size = 0
    while not inflater.eof:
        try:
            piece = inflater.decompress(data, max_length=min(_STEP, limit + 1 - size))
        except (RuntimeError, ValueError) as error:
            raise _broken(Codec.LZ4, str(error)) from error
        size += len(piece)
        if size > limit:
            raise BodyTooLarge(stored, limit)
        if not piece and not inflater.eof:
            raise _broken(Codec.LZ4, "it is cut short")
        pieces.append(piece)
        data = b""
    return b"".join(pieces)


def _zstd_compress(body: bytes, level: int) -> bytes:
    try:
        import zstandard
    except ImportError as error:
        raise CodecMissing("zstandard") from error
    return zstandard.ZstdCompressor(level=level).compress(body)


def _zstd_decompress(data: bytes, limit: int) -> bytes:
    try:
        import zstandard
    except ImportError as error:
        if Codec.ZSTD in stand_ins:
            return stand_ins[Codec.ZSTD](data, limit)
        raise CodecMissing("zstandard") from error
    try:
        declared = zstandard.get_frame_parameters(data).content_size
        if declared != zstandard.CONTENTSIZE_UNKNOWN:
            if declared > limit:
                raise BodyTooLarge(len(data), limit)
            return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise _broken(Codec.ZSTD, str(error)) from error
    # Java streams, so its frames do not declare their size: grow the output until the body fits.
    offered = min(limit, max(1 << 16, 8 * len(data)))
    while True:
        try:
            return zstandard.ZstdDecompressor().decompress(data, max_output_size=offered)
        except zstandard.ZstdError as error:
            if offered == limit:
                if _zstd_exceeds(data, limit):
                    raise BodyTooLarge(len(data), limit) from error
                raise _broken(Codec.ZSTD, str(error)) from error
        offered = min(limit, 4 * offered)


def _zstd_exceeds(data: bytes, limit: int) -> bool:
    """Return whether a frame that does not declare its size inflates past `limit` bytes."""
    import zstandard

    size = 0
    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as reader:
            while piece := reader.read(_STEP):
                size += len(piece)
                if size > limit:
                    return True
    except zstandard.ZstdError:
        return False
    return False
