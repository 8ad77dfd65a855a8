"""PROXY headers: what they say, and from whom they count."""

import asyncio
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import GreetingMalformed, InvalidInput
from pocketmq.net import Address, Limits, TlsMode, parse_networks
from pocketmq.net.handshake import PREFIX, SIGNATURE, addresses_size, read_binary, read_text
from tests.loops import leap, leaping
from tests.net.certificates import make_certificates
from tests.net.peers import Raw, Recorder, ask, echo, serving

TEXT = b"PROXY TCP4 192.0.2.7 10.0.0.1 56324 9876\r\n"


def binary(address: Address, command: int = 1, extra: bytes = b"") -> bytes:
    """A header of version 2."""
    packed = bytes(map(int, address.host.split(".")))
    body = packed + bytes(4) + struct.pack(">HH", address.port, 9876) + extra
    return SIGNATURE + bytes([0x20 | command, 0x11]) + len(body).to_bytes(2, "big") + body


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (TEXT, Address("192.0.2.7", 56324)),
        (b"PROXY TCP6 2001:db8::7 ::1 1 65535\r\n", Address("2001:db8::7", 1)),
        (b"PROXY UNKNOWN\r\n", None),
        (b"PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\n", None),
    ],
)
def test_text_headers_tell_the_source(line: bytes, found: Address | None) -> None:
    assert read_text(line) == found


@pytest.mark.parametrize(
    "line",
    [
        b"PROXY\r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 56324\r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 56324 9876\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 56324 9876",
        b"PROXY TCP4 2001:db8::7 ::1 1 1\r\n",
        b"PROXY TCP4 192.0.2.700 10.0.0.1 1 1\r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 65536 1\r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 -1 1\r\n",
        b"PROXY TCP4  192.0.2.7 10.0.0.1 1 1\r\n",
        b"PROXY UDP4 192.0.2.7 10.0.0.1 1 1\r\n",
        b"PROXZ TCP4 192.0.2.7 10.0.0.1 1 1\r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 1 \xb2\r\n",
    ],
)
def test_other_lines_are_no_headers(line: bytes) -> None:
    with pytest.raises(GreetingMalformed):
        read_text(line)


@given(st.ip_addresses(v=4).map(str), st.integers(0, 65535), st.binary(max_size=50))
def test_binary_headers_tell_the_source(host: str, port: int, extra: bytes) -> None:
    whole = binary(Address(host, port), extra=extra)
    assert addresses_size(whole[:PREFIX]) == len(whole) - PREFIX
    assert read_binary(whole[:PREFIX], whole[PREFIX:]) == Address(host, port)


@given(st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (read_text, lambda d: read_binary(d[:PREFIX].ljust(PREFIX), d[PREFIX:])):
        try:
            found = read(data)
        except GreetingMalformed:
            continue
        assert found is None or 0 <= found.port <= 65535


@pytest.mark.parametrize(
    "prefix",
    [
        b"\r\n\r\n\x00\r\nQUIT\n\x11\x11\x00\x0c",
        b"\r\n\r\n\x00\r\nQUIT\n\x22\x11\x00\x0c",
        b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff",
        b"\r\n\r\n\x00\r\nQUIX\n\x21\x11\x00\x0c",
    ],
)
def test_other_prefixes_are_no_headers(prefix: bytes) -> None:
    with pytest.raises(GreetingMalformed):
        addresses_size(prefix)


async def told_address(header: bytes, balancers: str) -> str | None:
    """What a server takes for the address of who sends this; None if it hangs up."""
    owner = Recorder(echo)
    async with serving(owner, balancers=balancers) as (_, address), Raw(address) as raw:
        await raw.send(header + ask(b"x").encode())
        try:
            if not await raw.read():
                return None
        except ConnectionResetError:
            return None
        return owner.opened[0].remote_address


async def test_a_listed_balancer_tells_whom_it_speaks_for() -> None:
    source = Address("203.0.113.9", 4711)
    assert await told_address(TEXT, "10.0.0.1, 127.0.0.0/8") == "192.0.2.7:56324"
    assert await told_address(binary(source), "127.0.0.1") == "203.0.113.9:4711"
    six = b"PROXY TCP6 2001:db8::7 ::1 5 6\r\n"
    assert await told_address(six, "127.0.0.1") == "[2001:db8::7]:5"


async def test_a_balancer_that_speaks_for_itself_keeps_its_address() -> None:
    for header in (b"PROXY UNKNOWN\r\n", binary(Address("1.2.3.4", 5), command=0)):
        found = await told_address(header, "127.0.0.1")
        assert found is not None
        assert found.startswith("127.0.0.1:")


async def test_nobody_else_may_say_so() -> None:
    for header in (TEXT, binary(Address("1.2.3.4", 5))):
        assert await told_address(header, "10.0.0.0/8") is None
        assert await told_address(header, "") is None


async def test_a_listed_balancer_has_to_say_so() -> None:
    """Otherwise its clients could, and claim any address."""
    assert await told_address(b"", "127.0.0.1") is None


async def test_a_header_may_come_in_pieces() -> None:
    owner = Recorder(echo)
    async with serving(owner, balancers="127.0.0.1") as (_, address):
        for header in (TEXT, binary(Address("192.0.2.7", 56324))):
            async with Raw(address) as raw:
                for byte in header:
                    await raw.send(bytes([byte]))
                await raw.send(ask(b"x").encode())
                (answer,) = await raw.commands(1)
                assert answer.body == b"x"
    assert [each.remote_address for each in owner.opened] == ["192.0.2.7:56324"] * 2


@leaping
async def test_half_a_header_is_waited_for_a_while_only() -> None:
    limits = Limits(handshake=5)
    async with (
        serving(Recorder(echo), limits, balancers="127.0.0.1") as (_, address),
        Raw(address) as raw,
    ):
        await raw.send(TEXT[:20])
        await leap(3)
        await leap(3)
        assert await raw.read() == b""


async def test_a_line_without_end_is_not_read_on() -> None:
    assert await told_address(b"PROXY " + b"x" * 200, "127.0.0.1") is None


async def test_tls_follows_the_header(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = make_certificates(tmp_path_factory.mktemp("certificates"))
    owner = Recorder(echo)
    tls = made.serving(TlsMode.ENFORCING)
    async with serving(owner, tls=tls, balancers="127.0.0.1") as (_, address):
        async with Raw(address) as plain:
            await plain.send(TEXT + ask().encode())
            with suppress(ConnectionResetError):
                assert await plain.read() == b""
        assert owner.opened == []
        raw = Raw(address)
        await raw.send(TEXT)
        reader, writer = await asyncio.open_connection(
            sock=raw.socket, ssl=made.asking().context(), server_hostname="127.0.0.1"
        )
        writer.write(ask(b"x").encode())
        assert b"x" in await reader.read(1000)
        assert owner.opened[0].remote_address == "192.0.2.7:56324"
        writer.close()
        await writer.wait_closed()


def test_lists_of_networks_are_checked() -> None:
    assert [str(each) for each in parse_networks("10.0.0.1, fd00::/8,")] == [
        "10.0.0.1/32",
        "fd00::/8",
    ]
    with pytest.raises(InvalidInput):
        parse_networks("balancer.example.com")
