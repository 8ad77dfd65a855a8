"""Address patterns of the 4.x access file: one, a list, a range, all, or none.

IPv4 and IPv6 alike. Pure; an invalid pattern is refused when the file is read, not at a request.
"""

import ipaddress
from collections.abc import Callable
from typing import TypeAlias

from pocketmq.errors import InvalidInput

AddressPattern: TypeAlias = Callable[[str], bool]
"""Returns whether an address belongs to a pattern."""

_EVERYBODY = {"*", "*.*.*.*", "*:*:*:*:*:*:*:*"}


def parse_pattern(text: str | None) -> AddressPattern:
    """Read a pattern; blank matches no address. Raises `InvalidInput`."""
    text = (text or "").strip()
    if not text:
        return _no_address
    if text in _EVERYBODY:
        return _any_address
    try:
        if text.endswith("}"):
            head, _, last = text[:-1].partition("{")
            return _one_of([head + each.strip() for each in last.split(",")])
        if "," in text:
            return _one_of(text.split(","))
        if "*" in text or "-" in text:
            return _range(text)
        return _one_of([text])
    except ValueError as error:
        raise InvalidInput(f"{text!r} is not an address pattern: {error}") from error


def _no_address(_: str) -> bool:
    return False


def _any_address(_: str) -> bool:
    return True


def _one_of(addresses: list[str]) -> AddressPattern:
    known = frozenset(ipaddress.ip_address(each.strip()) for each in addresses if each.strip())

    def matches(host: str) -> bool:
        try:
            return ipaddress.ip_address(host) in known
        except ValueError:
            return False

    return matches


def _range(text: str) -> AddressPattern:
    """Read `10.1.2.*`, `10.1.2-9.*`, `fe80::1-9f:*`: fixed parts, one range, then anything."""
    mark, base, size = (":", 16, 16) if ":" in text else (".", 10, 8)
    parts = [part.strip() for part in text.split(mark)]
    at = next(index for index, part in enumerate(parts) if "*" in part or "-" in part)
    after = len(parts) - at
    if at == 0 or any(part != "*" for part in parts[at + 1 :]) or after > 7:
        raise ValueError("a range needs a fixed part before it, and only * may follow it")
    lowest, highest = _ends(parts[at], base, (1 << size) - 1)
    first = ipaddress.ip_address(mark.join([*parts[:at], *["0"] * after]))
    shift = (after - 1) * size
    start = (int(first) >> shift) + lowest
    end = (int(first) >> shift) + highest

    def matches(host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return address.version == first.version and start <= int(address) >> shift <= end

    return matches


def _ends(part: str, base: int, most: int) -> tuple[int, int]:
    if part == "*":
        return 0, most
    low, minus, high = part.partition("-")
    if not (minus and part.isascii() and low.isalnum() and high.isalnum()):
        raise ValueError(f"{part!r} is not a range")
    lowest, highest = int(low, base), int(high, base)
    if not 0 <= lowest <= highest <= most:
        raise ValueError(f"{part!r} is not a range within 0 to {most}")
    return lowest, highest
