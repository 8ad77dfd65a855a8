"""Socket addresses as messages carry them: the IP's bytes, then the port as a 32-bit integer.

Text is `10.1.2.3:10911` or `[::1]:10911`. Names are never looked up.
"""

import ipaddress
import struct

from pocketmq.errors import InvalidInput, MessageMalformed

V4_SIZE = 8
V6_SIZE = 20

_V4 = struct.Struct(">4Bi")
_V6 = struct.Struct(">16si")
_PORT = struct.Struct(">i")


def encode_host(text: str) -> bytes:
    """Return the 8 bytes of an IPv4 address with its port, or the 20 of an IPv6 one.

    IPv6 may go without brackets, as Java prints it. Raises `InvalidInput` for anything else.
    """
    ip, _, port = text.rpartition(":")
    if ip.startswith("[") and ip.endswith("]"):
        ip = ip[1:-1]
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 0xFFFF):
        raise InvalidInput(f"{text!r} is not an address with a port, such as 127.0.0.1:10911")
    try:
        return ipaddress.ip_address(ip).packed + _PORT.pack(int(port))
    except ValueError as error:
        raise InvalidInput(f"{text!r} does not start with an IP address") from error


def decode_host(raw: bytes) -> str:
    """Return the text of an address of 8 or 20 bytes.

    Raises `MessageMalformed` for another size or a port that no socket has; Java refuses the
    whole message for such a port.
    """
    if len(raw) == V4_SIZE:
        a, b, c, d, port = _V4.unpack(raw)
        text = f"{a}.{b}.{c}.{d}:{port}"
    elif len(raw) == V6_SIZE:
        packed, port = _V6.unpack(raw)
        text = f"[{ipaddress.IPv6Address(packed)}]:{port}"
    else:
        raise MessageMalformed(f"an address of {len(raw)} bytes, not 8 or 20")
    if not 0 <= port <= 0xFFFF:
        raise MessageMalformed(f"an address with port {port}")
    return text
