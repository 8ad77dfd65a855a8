"""Bodies that gRPC producers compressed: gzip becomes zlib, which all RocketMQ clients read.

Apache's proxy stores the gzip data as it comes and flags it as compressed; Java's remoting
consumers then fail to inflate it as zlib. Both wrap the same deflate stream, so it is kept.
"""

import zlib

from pocketmq.proxy.translation.refusals import CallRefused
from pocketmq.proxy.wire import definition as d

LARGEST_INFLATED = 64 * 1024 * 1024
_ZLIB_HEADER = b"\x78\x9c"
_STEP = 1 << 20
_FIXED = 10
_TRAILER = 8


def zlib_of(body: bytes, limit: int = LARGEST_INFLATED) -> bytes:
    """Return gzip data as zlib data; raises `CallRefused` if it is broken or inflates too far."""
    start = _deflate_at(body)
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    adler, crc, size, rest = 1, 0, 0, body[start:]
    try:
        while True:
            part = inflate.decompress(rest, _STEP)
            adler, crc, size = zlib.adler32(part, adler), zlib.crc32(part, crc), size + len(part)
            if size > limit:
                most = f"the body inflates to more than {limit} bytes"
                raise CallRefused(d.Code.MESSAGE_BODY_TOO_LARGE, most)
            rest = inflate.unconsumed_tail
            if inflate.eof or not (part or rest):
                break
    except zlib.error as error:
        raise _broken(str(error)) from error
    trailer = inflate.unused_data[:_TRAILER]
    if not inflate.eof or len(trailer) < _TRAILER:
        raise _broken("it is cut short")
    if trailer != crc.to_bytes(4, "little") + (size & 0xFFFF_FFFF).to_bytes(4, "little"):
        raise _broken("its checksum is wrong")
    deflated = body[start : len(body) - len(inflate.unused_data)]
    return _ZLIB_HEADER + deflated + adler.to_bytes(4, "big")


def _deflate_at(body: bytes) -> int:
    """Return where the deflate stream starts, behind the optional fields of the gzip header."""
    if len(body) < _FIXED + _TRAILER or body[:3] != b"\x1f\x8b\x08":
        raise _broken("it has no gzip header")
    flags, at = body[3], _FIXED
    if flags & 4:
        at += 2 + int.from_bytes(body[at : at + 2], "little")
    for bit in (8, 16):  # name and comment, each ended by a zero
        if flags & bit:
            end = body.find(b"\0", at)
            if end < 0:
                raise _broken("its header is cut short")
            at = end + 1
    return at + (2 if flags & 2 else 0)


def _broken(reason: str) -> CallRefused:
    return CallRefused(d.Code.MESSAGE_CORRUPTED, f"the body is not valid gzip data: {reason}")
