import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import InvalidInput, MessageMalformed
from pocketmq.protocol.hosts import decode_host, encode_host


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("127.0.0.1:10911", "7f00000100002a9f"),
        ("0.0.0.0:0", "0000000000000000"),
        ("255.255.255.255:65535", "ffffffff0000ffff"),
        ("[::1]:2", "0000000000000000000000000000000100000002"),
        ("[2001:db8::1]:10911", "20010db800000000000000000000000100002a9f"),
    ],
)
def test_an_address_goes_both_ways(text: str, raw: str) -> None:
    assert encode_host(text) == bytes.fromhex(raw)
    assert decode_host(bytes.fromhex(raw)) == text


def test_ipv6_may_come_without_brackets_as_java_prints_it() -> None:
    assert encode_host("0:0:0:0:0:0:0:1:10911") == encode_host("[::1]:10911")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:-1",
        "127.0.0.1:65536",
        "127.0.0.1:1e3",
        "127.0.0.1:٣",
        "broker-a:10911",
        "127.0.0.256:1",
        "127.0.1:1",
        "[::1:1",
        ":10911",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        encode_host(text)


@pytest.mark.parametrize(
    "raw", ["", "7f000001", "7f0000010000ffff00", "7f00000100010000", "7f000001ffffffff"]
)
def test_bytes_of_another_size_or_with_an_impossible_port_are_refused(raw: str) -> None:
    with pytest.raises(MessageMalformed):
        decode_host(bytes.fromhex(raw))


@given(st.ip_addresses(), st.integers(0, 65535))
def test_every_address_survives_the_round_trip(ip: object, port: int) -> None:
    text = f"[{ip}]:{port}" if ":" in str(ip) else f"{ip}:{port}"
    assert decode_host(encode_host(text)) == text
