"""Owners and raw peers for tests of the transport."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Self

from pocketmq import net
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader

LOOPBACK = "127.0.0.1"

Answer = Callable[[net.Connection, list[Command]], None]


class Recorder:
    """An owner that remembers everything and answers as told."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.opened: list[net.Connection] = []
        self.batches: list[list[Command]] = []
        self.closed: list[tuple[net.Connection, Exception | None]] = []
        self.answer = answer

    @property
    def requests(self) -> list[Command]:
        return [request for batch in self.batches for request in batch]

    def asked(self, count: int) -> bool:
        return len(self.requests) == count

    @property
    def causes(self) -> list[Exception | None]:
        return [cause for _, cause in self.closed]

    def connection_opened(self, connection: net.Connection) -> None:
        self.opened.append(connection)

    def requests_received(self, connection: net.Connection, requests: list[Command]) -> None:
        self.batches.append(requests)
        if self.answer is not None:
            self.answer(connection, requests)

    def connection_closed(self, connection: net.Connection, cause: Exception | None) -> None:
        self.closed.append((connection, cause))


def echo(connection: net.Connection, requests: list[Command]) -> None:
    """Answer every request with its own body; one-way ones not at all."""
    for request in requests:
        if not request.is_oneway:
            connection.write(request.reply(0, body=request.body).encode())


def ask(body: bytes = b"", code: int = 310, opaque: int = 0) -> Command:
    return Command.request(code, opaque, body=body)


def is_open(connection: net.Connection) -> bool:
    """Ask anew each time; a type checker believes that attributes stay as they were."""
    return not connection.closed


class Raw:
    """A peer without manners: bytes out, bytes in, nothing by itself."""

    def __init__(self, address: str, *, receive_buffer: int = 0) -> None:
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        self.socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            self.socket.connect((host, int(port)))
        except OSError:
            self.socket.close()
            raise
        self.socket.setblocking(False)
        self._reader = FrameReader()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.socket.close()

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.socket, data)

    async def read(self, size: int = 65536) -> bytes:
        """Return what is there, or nothing at the end; fail if neither comes."""
        async with asyncio.timeout(10):
            return await asyncio.get_running_loop().sock_recv(self.socket, size)

    async def read_to_end(self) -> bytes:
        pieces = []
        while piece := await self.read(1 << 20):
            pieces.append(piece)
        return b"".join(pieces)

    async def commands(self, count: int) -> list[Command]:
        found: list[Command] = []
        while len(found) < count:
            data = await self.read()
            assert data, f"the end after {len(found)} of {count} commands"
            found += [read_command(frame) for frame in self._reader.feed(data)]
        return found

    def reset(self) -> None:
        """Close with RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


@asynccontextmanager
async def serving(
    owner: Recorder,
    limits: net.Limits | None = None,
    tls: net.ServerTls | None = None,
    balancers: str = "",
) -> AsyncIterator[tuple[net.Server, str]]:
    server = net.Server(owner, limits)
    if tls is not None or balancers:
        server.guard(net.Handshake(tls, net.parse_networks(balancers), server.limits))
    address = await server.listen(LOOPBACK, 0)
    try:
        yield server, str(address)
    finally:
        await server.close(grace=0.2)


@asynccontextmanager
async def dialling(
    owner: Recorder, limits: net.Limits | None = None, tls: net.Tls | None = None
) -> AsyncIterator[net.Dialer]:
    dialer = net.Dialer(owner, limits, tls)
    try:
        yield dialer
    finally:
        await dialer.close(grace=0.2)
