"""Between accept and the first frame: PROXY header, TLS or plain, decided by the first bytes.

Peeks at bytes without consuming those that belong to what follows. A server without TLS and without
load balancers has no handshake. Where there is one, a plain connection pays for one peek, and its
messages for nothing.

A load balancer names its client in a PROXY header (versions 1 and 2). Only peers in
`haProxyAddresses` may send one, and they must: a peer that may send a header can claim any address.
"""

import asyncio
import ipaddress
import socket
import ssl
import struct
from typing import NamedTuple, TypeAlias

from pocketmq.errors import ConnectionLost, GreetingMalformed, InvalidInput
from pocketmq.net.address import Address, socket_name
from pocketmq.net.limits import Limits
from pocketmq.net.self_signed import SelfSigned
from pocketmq.net.tls import Contexts, ServerTls, TlsMode

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
CLIENT_HELLO = 0x16
"""How TLS begins. A plain frame with this first byte would be longer than any frame may be."""
Networks: TypeAlias = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


def read_text(line: bytes) -> Address | None:
    r"""Read a header of version 1, `PROXY TCP4 source destination port port\r\n`.

    None if it names no client. Raises `GreetingMalformed`.
    """
    if not line.endswith(b"\r\n") or len(line) > TEXT_LIMIT or not line.isascii():
        raise GreetingMalformed("PROXY header without an end of line")
    words = line[:-2].decode().split(" ")
    if words[:2] == ["PROXY", "UNKNOWN"]:
        return None
    family = _FAMILIES.get(words[1]) if len(words) == 6 and words[0] == "PROXY" else None
    if family is None:
        raise GreetingMalformed("malformed PROXY header")
    try:
        source, _ = family(words[2]), family(words[3])
    except ValueError as error:
        raise GreetingMalformed("PROXY header with an invalid address") from error
    if not all(port.isdigit() and len(port) <= 5 and int(port) <= 65535 for port in words[4:]):
        raise GreetingMalformed("PROXY header with an invalid port")
    return Address(str(source), int(words[4]))


def addresses_size(prefix: bytes) -> int:
    """Return the number of bytes after the first 16 of version 2. Raises `GreetingMalformed`."""
    if prefix[:12] != SIGNATURE or prefix[12] >> 4 != 2 or prefix[12] & 15 > _PROXY:
        raise GreetingMalformed("not a PROXY header of version 2")
    size = int.from_bytes(prefix[14:16], "big")
    if size > ADDRESSES_LIMIT:
        raise GreetingMalformed(f"PROXY header of {size} bytes")
    return size


def read_binary(prefix: bytes, addresses: bytes) -> Address | None:
    """Read a header of version 2; None for the balancer's own health check, or if it is not TCP.

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
        raise GreetingMalformed("PROXY header too short for its addresses") from error
    return Address(str(ipaddress.ip_address(source)), port)


class Admitted(NamedTuple):
    """How a socket is to be served."""

    context: ssl.SSLContext | None
    source: str
    """The client's address as its load balancer reports it; empty: the socket's own."""


class Handshake:
    """Admits the sockets of one server. Belongs to its event loop."""

    def __init__(
        self, tls: ServerTls | SelfSigned | None, balancers: Networks, limits: Limits
    ) -> None:
        """Read certificates; raises `InvalidInput` if they are unusable.

        With a self-signed one, clients may use TLS or not.
        """
        self._loop = asyncio.get_running_loop()
        self._self_signed = tls if isinstance(tls, SelfSigned) else None
        given = tls if isinstance(tls, ServerTls) and tls.mode is not TlsMode.DISABLED else None
        self._contexts = None if given is None else Contexts(given, self._loop.time)
        self._enforcing = given is not None and given.mode is TlsMode.ENFORCING
        self._balancers = balancers
        self._limits = limits

    async def admit(self, peer: socket.socket) -> Admitted:
        """Wait for a peer's first bytes. Raises `ConnectionLost` for one that is refused.

        A balancer must send a header: else its clients could send one themselves, through it.
        """
        try:
            name = peer.getpeername()
            source = ""
            if self._balancers and is_among(name[0], self._balancers):
                async with asyncio.timeout(self._limits.handshake):
                    source = await self._read_proxy_header(peer)
            context = await self._read_kind(peer)
        except GreetingMalformed as error:
            raise ConnectionLost(socket_name(name), str(error)) from error
        except TimeoutError as error:
            raise ConnectionLost(socket_name(name), "the peer sent nothing in time") from error
        return Admitted(context, source)

    async def _read_kind(self, peer: socket.socket) -> ssl.SSLContext | None:
        if self._contexts is None and self._self_signed is None:
            return None
        async with asyncio.timeout(self._limits.idle):
            first = await self._peek(peer, 1)
        if first[0] == CLIENT_HELLO:
            if self._self_signed is not None:
                return await self._self_signed.context()
            assert self._contexts is not None
            return self._contexts.current()
        if self._enforcing:
            raise GreetingMalformed("the peer does not speak TLS, which this server requires")
        return None

    async def _read_proxy_header(self, peer: socket.socket) -> str:
        first = await self._peek(peer, 1)
        if first == TEXT_START:
            address = read_text(await self._take_line(peer))
        else:
            prefix = await self._take(peer, PREFIX)
            rest = await self._take(peer, addresses_size(prefix))
            address = read_binary(prefix, rest)
        return "" if address is None else str(address)

    async def _take_line(self, peer: socket.socket) -> bytes:
        line = b""
        while len(line) < TEXT_LIMIT:
            seen = await self._peek(peer, TEXT_LIMIT - len(line))
            end = seen.find(b"\n") + 1
            line += peer.recv(end or len(seen))
            if end:
                break
        return line

    async def _take(self, peer: socket.socket, size: int) -> bytes:
        taken = b""
        while len(taken) < size:
            taken += peer.recv(len(await self._peek(peer, size - len(taken))))
        return taken

    async def _peek(self, peer: socket.socket, size: int) -> bytes:
        """Return what has arrived, at least one byte, without consuming it."""
        while True:
            try:
                seen = peer.recv(size, socket.MSG_PEEK)
            except (BlockingIOError, InterruptedError):
                await self._readable(peer)
                continue
            if not seen:
                raise GreetingMalformed("the peer closed the connection without sending anything")
            return seen

    async def _readable(self, peer: socket.socket) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()

        def note() -> None:
            if not ready.done():
                ready.set_result(None)

        number = peer.fileno()
        self._loop.add_reader(number, note)
        try:
            await ready
        finally:
            self._loop.remove_reader(number)


def parse_networks(text: str) -> Networks:
    """Read addresses and networks joined by commas. Raises `InvalidInput`."""
    try:
        parts = [part.strip() for part in text.split(",")]
        return tuple(ipaddress.ip_network(part, strict=False) for part in parts if part)
    except ValueError as error:
        raise InvalidInput(f"{text!r} is not a list of addresses and networks: {error}") from error


def is_among(host: str, networks: Networks) -> bool:
    """Return whether an address belongs to one of these networks. Raises `ValueError`."""
    address = ipaddress.ip_address(host.partition("%")[0])
    return any(address in network for network in networks)
