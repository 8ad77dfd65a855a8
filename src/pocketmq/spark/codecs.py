"""lz4 and zstd bodies read by Arrow's codecs, where the packages of their own are not installed."""

from functools import partial

import pyarrow as pa

from pocketmq.errors import BodyTooLarge, MessageMalformed
from pocketmq.protocol.compression import Codec, stand_ins

_NAMES = {Codec.LZ4: "lz4", Codec.ZSTD: "zstd"}
_FIRST = 1 << 16


def use_arrow_codecs() -> None:
    """Let Arrow inflate what no installed package does."""
    for codec in _NAMES:
        stand_ins.setdefault(codec, partial(inflate, codec))


def inflate(codec: Codec, data: bytes, limit: int) -> bytes:
    """Return a body as its sender handed it over; at most `limit` bytes and one are ever made.

    Raises `BodyTooLarge`, and `MessageMalformed` for data that is broken, is cut short or has more
    than its frame.
    """
    pieces: list[bytes] = []
    size, step = 0, max(_FIRST, 4 * len(data))
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), _NAMES[codec]) as stream:
            while piece := stream.read(min(step, limit + 1 - size)):
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    raise BodyTooLarge(len(data), limit)
    except (OSError, pa.ArrowInvalid) as error:
        raise MessageMalformed(f"the body is not valid {codec.name} data: {error}") from error
    return b"".join(pieces)
