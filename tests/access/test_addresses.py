"""Patterns of addresses in the access file: who belongs to them, and what is none."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.broker.access.addresses import parse_pattern
from pocketmq.errors import InvalidInput

PATTERNS = {
    "": ([], ["127.0.0.1", "::1", ""]),
    "  ": ([], ["127.0.0.1"]),
    "*": (["127.0.0.1", "::1"], []),
    "*.*.*.*": (["127.0.0.1"], []),
    "*:*:*:*:*:*:*:*": (["::1"], []),
    "10.0.0.7": (["10.0.0.7"], ["10.0.0.70", "10.0.0", "10.0.0.7:80", "", "x"]),
    "10.0.0.{1,2,30}": (["10.0.0.1", "10.0.0.2", "10.0.0.30"], ["10.0.0.3", "10.0.0.12"]),
    "10.0.0.1,10.1.0.1": (["10.0.0.1", "10.1.0.1"], ["10.0.1.1"]),
    "10.0.0.*": (["10.0.0.0", "10.0.0.255"], ["10.0.1.0", "10.0.0.256", "110.0.0.1"]),
    "10.0.*.*": (["10.0.0.0", "10.0.255.255"], ["10.1.0.0"]),
    "10.*.*.*": (["10.9.8.7"], ["11.0.0.1", "9.255.255.255"]),
    "10.0.0.2-9": (["10.0.0.2", "10.0.0.9"], ["10.0.0.1", "10.0.0.10", "10.0.1.5"]),
    "10.0.2-9.*": (["10.0.2.0", "10.0.9.255"], ["10.0.1.255", "10.0.10.0"]),
    "fe80::1": (["fe80::1", "FE80:0:0:0:0:0:0:1"], ["fe80::2", "254.128.0.1"]),
    "fe80::{1,2}": (["fe80::1", "fe80::2"], ["fe80::3"]),
    "fe80::a:*": (["fe80::a:0", "fe80::a:ffff"], ["fe80::b:0"]),
    "fe80::1-ff": (["fe80::1", "fe80::ff"], ["fe80::", "fe80::100"]),
    "fe80::1-ff:*": (["fe80::1:0", "fe80::ff:ffff"], ["fe80::1", "fe80::100:0"]),
}
NONE = [
    "10.0.0", "10.0.0.256", "10.0.0.0/8", "localhost", "10.0.0.9-2", "10.0.0.-1-2", "10.0.0.1-256",
    "*.0.0.1", "10.*.0.1", "10.0.0.{1,x}", "10.0.0.1,x", "1-2", "fe80::1-fffff", "fe80::{g}",
    "10.0.0.0x1-0x2", "10.0.0.1 -2-3", "a-b-c", "-", "*-*", "10.0.0.٣-٤",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_holds_what_it_says(pattern: str) -> None:
    matches = parse_pattern(pattern)
    inside, outside = PATTERNS[pattern]
    assert [host for host in inside if not matches(host)] == []
    assert [host for host in outside if matches(host)] == []


@pytest.mark.parametrize("pattern", NONE)
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    """Java takes `10.*.0.1` for `10.*`, which is more than it says."""
    with pytest.raises(InvalidInput):
        parse_pattern(pattern)


def test_no_pattern_is_nobody() -> None:
    assert not parse_pattern(None)("127.0.0.1")


@given(st.ip_addresses(), st.integers(0, 3))
def test_a_range_holds_its_own_network(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, stars: int
) -> None:
    mark = "." if address.version == 4 else ":"
    parts = address.exploded.split(mark)
    pattern = mark.join([*parts[: len(parts) - stars], *["*"] * stars])
    assert parse_pattern(pattern)(str(address))
    other = ipaddress.ip_address(int(address) ^ 1 << (address.max_prefixlen - 1))
    assert not parse_pattern(pattern)(str(other))
