import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import InvalidInput
from pocketmq.net import Address, parse_address, parse_addresses
from pocketmq.net.address import socket_name

HOSTS = st.one_of(
    st.ip_addresses().map(str),
    st.from_regex(r"[a-z][a-z0-9-]{0,20}(\.[a-z]{2,5})?", fullmatch=True),
)


@given(HOSTS, st.integers(0, 65535))
def test_an_address_reads_back_as_it_prints(host: str, port: int) -> None:
    assert parse_address(str(Address(host, port))) == Address(host, port)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9876", Address("localhost", 9876)),
        (" 10.0.0.1:10911 ", Address("10.0.0.1", 10911)),
        ("[::1]:9876", Address("::1", 9876)),
        ("[fe80::1%eth0]:1", Address("fe80::1%eth0", 1)),
        ("[localhost]:1", Address("localhost", 1)),
    ],
)
def test_addresses_as_people_write_them(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "9876", "host", "host:", ":9876", "host:65536", "host:-1", "host:1x", "host:٣", "::1:9876",
        "a b:1", "a\0b:1", "http://host:1", "[::1]", "[]:1", "host:" + "9" * 5000, "a;b:1", "[::1]]:1",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not an address"):
        parse_address(text)


def test_an_ipv6_host_without_brackets_is_told_to_wear_them() -> None:
    with pytest.raises(InvalidInput, match=r"\[::1\]:9876"):
        parse_address("::1:9876")


def test_a_list_keeps_its_order_and_drops_repetitions_and_gaps() -> None:
    assert parse_addresses("b:1; a:2;b:1;;") == [Address("b", 1), Address("a", 2)]


@pytest.mark.parametrize("text", ["", " ; ;"])
def test_an_empty_list_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="no address given"):
        parse_addresses(text)


def test_socket_names_print_as_addresses() -> None:
    assert socket_name(("10.0.0.1", 80)) == "10.0.0.1:80"
    assert socket_name(("::1", 80, 0, 0)) == "[::1]:80"
    assert socket_name("/run/socket") == ""
    assert socket_name(None) == ""
