"""The checksums of the bodies of stored records, verified for many of them in one call."""

from array import array
from zlib import crc32

from pocketmq.native import in_core


@in_core
def wrong_body(data: bytes, starts: bytes, ends: bytes, stored: bytes) -> int:
    """Return the number of the first body that does not match its checksum, -1 if all match.

    `starts` and `ends` are the bounds of the bodies in `data`, and `stored` their checksums, each
    as 64-bit numbers of this machine. A checksum of 0 is none.
    """
    places = zip(array("q", starts), array("q", ends), array("q", stored), strict=True)
    for number, (start, end, expected) in enumerate(places):
        if expected and crc32(data[start:end]) & 0x7FFF_FFFF != expected:
            return number
    return -1
