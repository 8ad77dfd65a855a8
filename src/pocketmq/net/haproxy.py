"""The PROXY protocol, versions 1 and 2: whom a load balancer speaks for.

Pure rules over the bytes of a header; what follows it is not looked at. Whether a peer may send one
is decided elsewhere: whoever may, can claim any address.
"""

import ipaddress
import struct

from pocketmq.errors import GreetingMalformed
from pocketmq.net.address import Address

TEXT_START = b"P"
TEXT_LIMIT = 107
"""Bytes of the longest header of version 1, with its line end."""
SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
PREFIX = 16
"""Bytes of a header of version 2 before the addresses."""
ADDRESSES_LIMIT = 4096
"""Addresses and extensions; more than any balancer sends."""

_LOCAL, _PROXY = 0, 1
_TCP4, _TCP6 = 0x11, 0x21
_FAMILIES = {"TCP4": ipaddress.IPv4Address, "TCP6": ipaddress.IPv6Address}


def read_text(line: bytes) -> Address | None:
    r"""Read a header of version 1, `PROXY TCP4 source destination port port\r\n`.

    None if it does not say for whom it speaks. Raises `GreetingMalformed`.
    """
    if not line.endswith(b"\r\n") or len(line) > TEXT_LIMIT or not line.isascii():
        raise GreetingMalformed("a PROXY header that does not end")
    words = line[:-2].decode().split(" ")
    if words[:2] == ["PROXY", "UNKNOWN"]:
        return None
    family = _FAMILIES.get(words[1]) if len(words) == 6 and words[0] == "PROXY" else None
    if family is None:
        raise GreetingMalformed("a PROXY header with other words than its own")
    try:
        source, _ = family(words[2]), family(words[3])
    except ValueError as error:
        raise GreetingMalformed("a PROXY header with an address that is none") from error
    if not all(port.isdigit() and len(port) <= 5 and int(port) <= 65535 for port in words[4:]):
        raise GreetingMalformed("a PROXY header with a port that is none")
    return Address(str(source), int(words[4]))


def addresses_size(prefix: bytes) -> int:
    """Give how many bytes follow the first 16 of version 2. Raises `GreetingMalformed`."""
    if prefix[:12] != SIGNATURE or prefix[12] >> 4 != 2 or prefix[12] & 15 > _PROXY:
        raise GreetingMalformed("not a PROXY header of version 2")
    size = int.from_bytes(prefix[14:16], "big")
    if size > ADDRESSES_LIMIT:
        raise GreetingMalformed(f"a PROXY header of {size} bytes")
    return size


def read_binary(prefix: bytes, addresses: bytes) -> Address | None:
    """Read a header of version 2; None for a check of the balancer's own, or no TCP.

    Raises `GreetingMalformed`.
    """
    if prefix[12] & 15 == _LOCAL:
        return None
    family = prefix[13]
    try:
        if family == _TCP4:
            source, _, port, _ = struct.unpack_from(">4s4sHH", addresses)
        elif family == _TCP6:
            source, _, port, _ = struct.unpack_from(">16s16sHH", addresses)
        else:
            return None
    except struct.error as error:
        raise GreetingMalformed("a PROXY header that is too short for its addresses") from error
    return Address(str(ipaddress.ip_address(source)), port)
