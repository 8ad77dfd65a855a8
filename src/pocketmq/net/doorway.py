"""Between accept and the first frame: PROXY header, TLS or plain, decided by the first bytes.

Looks at bytes without taking those that belong to what follows. A server without TLS and without
load balancers has no doorway, and its connections pay nothing for it.
"""

import asyncio
import ipaddress
import socket
import ssl
from typing import NamedTuple, TypeAlias

from pocketmq.errors import ConnectionLost, GreetingMalformed, InvalidInput
from pocketmq.net import doorway
from pocketmq.net.address import socket_name
from pocketmq.net.limits import Limits
from pocketmq.net.tls import Contexts, ServerTls, TlsMode

CLIENT_HELLO = 0x16
"""How TLS begins. A plain frame with this first byte would be longer than any frame may be."""

Networks: TypeAlias = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


class Admitted(NamedTuple):
    """How to go on with a socket."""

    context: ssl.SSLContext | None
    source: str
    """The peer's address as its load balancer tells it; empty: the socket's own."""


class Doorway:
    """Decides for one server. Belongs to its event loop."""

    def __init__(self, tls: ServerTls | None, balancers: Networks, limits: Limits) -> None:
        """Read certificates; raises `InvalidInput` if they cannot be used."""
        self._loop = asyncio.get_running_loop()
        self._mode = TlsMode.DISABLED if tls is None else tls.mode
        spoken = tls is not None and tls.mode is not TlsMode.DISABLED
        self._contexts = Contexts(tls, self._loop.time) if tls is not None and spoken else None
        self._balancers = balancers
        self._limits = limits

    async def admit(self, peer: socket.socket) -> Admitted:
        """Wait for a peer's first bytes. Raises `ConnectionLost` for one that may not come in.

        A balancer has to tell whom it speaks for: otherwise its clients could do so themselves.
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
            raise ConnectionLost(socket_name(name), "it says nothing") from error
        return Admitted(context, source)

    async def _read_kind(self, peer: socket.socket) -> ssl.SSLContext | None:
        if self._contexts is None:
            return None
        async with asyncio.timeout(self._limits.idle):
            first = await self._look(peer, 1)
        if first[0] == CLIENT_HELLO:
            return self._contexts.current()
        if self._mode is TlsMode.ENFORCING:
            raise GreetingMalformed("it does not speak TLS, which it has to here")
        return None

    async def _read_proxy_header(self, peer: socket.socket) -> str:
        first = await self._look(peer, 1)
        if first == doorway.TEXT_START:
            address = doorway.read_text(await self._take_line(peer))
        else:
            prefix = await self._take(peer, doorway.PREFIX)
            rest = await self._take(peer, doorway.addresses_size(prefix))
            address = doorway.read_binary(prefix, rest)
        return "" if address is None else str(address)

    async def _take_line(self, peer: socket.socket) -> bytes:
        line = b""
        while len(line) < doorway.TEXT_LIMIT:
            seen = await self._look(peer, doorway.TEXT_LIMIT - len(line))
            end = seen.find(b"\n") + 1
            line += peer.recv(end or len(seen))
            if end:
                break
        return line

    async def _take(self, peer: socket.socket, size: int) -> bytes:
        taken = b""
        while len(taken) < size:
            taken += peer.recv(len(await self._look(peer, size - len(taken))))
        return taken

    async def _look(self, peer: socket.socket, size: int) -> bytes:
        """Give what is there, at least one byte, and leave it there."""
        while True:
            try:
                seen = peer.recv(size, socket.MSG_PEEK)
            except (BlockingIOError, InterruptedError):
                await self._readable(peer)
                continue
            if not seen:
                raise GreetingMalformed("it hung up before it had said anything")
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
        raise InvalidInput(f"{text!r} is no list of addresses and networks: {error}") from error


def is_among(host: str, networks: Networks) -> bool:
    """Tell whether an address belongs to one of these networks. Raises `ValueError`."""
    address = ipaddress.ip_address(host.partition("%")[0])
    return any(address in network for network in networks)
