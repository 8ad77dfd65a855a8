"""A TCP proxy that breaks the network on request: slow, torn, deaf, cut, corrupt or one-way.

Stands between a client and a real server. Works on bytes, whatever they mean.
"""

import asyncio
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Self

from pocketmq.embedded.listening import HeldPort
from pocketmq.net.address import Address, parse_address, socket_name

_CHUNK = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, for no time: closing sends RST


class Way(Flag):
    """A direction through the proxy."""

    TO_SERVER = auto()
    TO_CLIENT = auto()
    BOTH = TO_SERVER | TO_CLIENT


@dataclass(slots=True)
class _Manners:
    """How one direction treats bytes."""

    delay: float = 0.0
    piece: int = 0
    pause: float = 0.0
    swallow: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)  # closed: hold everything
    passed: int = 0
    corrupt_at: int = -1
    cut_at: int = -1
    cut_resets: bool = False

    def reset(self) -> None:
        self.delay = self.pause = 0.0
        self.piece = 0
        self.swallow = False
        self.corrupt_at = self.cut_at = -1
        self.gate.set()

    @property
    def plain(self) -> bool:
        """Whether bytes pass as they come, at once."""
        return not (self.delay or self.piece or self.swallow) and (
            self.corrupt_at < 0 and self.cut_at < 0 and self.gate.is_set()
        )

    def spoil(self, data: bytes) -> bytes:
        """Flip the byte that was asked for, if it is in here."""
        index = self.corrupt_at - self.passed
        if self.corrupt_at < 0 or index >= len(data):
            return data
        self.corrupt_at = -1
        return data[:index] + bytes([data[index] ^ 0xFF]) + data[index + 1 :]


class FaultProxy:
    """Listens on a free port in front of `target` and passes bytes on, with faults on request.

    What is set applies to open and to later connections alike, until `pass_through`. Belongs to
    one event loop: call its methods there.

        async with FaultProxy("127.0.0.1:9876") as proxy:
            client.connect(proxy.address)
            proxy.cut(reset=True)
    """

    def __init__(self, target: str, host: str = "127.0.0.1") -> None:
        self.target = target
        self.address = ""
        self.accepted = 0  # connections so far
        self._host = host
        self._port = 0
        self._listener: socket.socket | None = None
        self._held = HeldPort()  # its port, while it refuses
        self._accepting = False
        self._links: dict[asyncio.Task[None], _ProxiedConnection] = {}
        self._manners = {Way.TO_SERVER: _Manners(), Way.TO_CLIENT: _Manners()}
        self.pass_through()

    async def __aenter__(self) -> Self:
        self.accept()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def links(self) -> int:
        """How many connections pass through now."""
        return len(self._links)

    def pass_through(self) -> None:
        """Heal: pass everything on again. A connection that lost bytes is reset instead."""
        for manners in self._manners.values():
            manners.reset()
        for link in self._links.values():
            if link.lossy:
                link.cut(reset=True)

    def delay(self, seconds: float, way: Way = Way.BOTH) -> None:
        """Let every piece wait before it is passed on."""
        for manners in self._on(way):
            manners.delay = seconds

    def trickle(self, count: int, pause: float = 0.0, way: Way = Way.BOTH) -> None:
        """Pass on `count` bytes at a time, with a pause (at least one turn) in between."""
        for manners in self._on(way):
            manners.piece = count
            manners.pause = pause

    def swallow(self, way: Way = Way.BOTH) -> None:
        """Take everything and pass nothing on, not even the end: a peer that died unnoticed."""
        for manners in self._on(way):
            manners.swallow = True

    def hold(self, way: Way) -> None:
        """Stop one direction (or both) until `pass_through`; nothing is lost."""
        for manners in self._on(way):
            manners.gate.clear()

    def corrupt(self, position: int, way: Way) -> None:
        """Flip the bits of one byte: the one after `position` further bytes have passed."""
        for manners in self._on(way):
            manners.corrupt_at = manners.passed + position

    def cut(self, *, reset: bool = False) -> None:
        """End every connection, with RST or with FIN; new ones are welcome."""
        for link in self._links.values():
            link.cut(reset=reset)

    def cut_after(self, count: int, way: Way, *, reset: bool = False) -> None:
        """End the connection on which `count` further bytes have passed, even in mid-frame."""
        for manners in self._on(way):
            manners.cut_at = manners.passed + count
            manners.cut_resets = reset

    def accept(self) -> None:
        """Accept connections, on the same port as before; the state to start in."""
        if self._listener is None:
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            self._listener = socket.create_server((self._host, self._port), family=family)
            self._listener.setblocking(False)
            self._held.let_go()
            self._port = self._listener.getsockname()[1]
            self.address = socket_name(self._listener.getsockname())
        if not self._accepting:
            self._accepting = True
            # A task that accepts could be cancelled while it is handed a socket, and lose it.
            asyncio.get_running_loop().add_reader(self._listener, self._accept, self._listener)

    async def stop_accepting(self) -> None:
        """Leave new connections to the kernel: they connect and get no answer."""
        if self._accepting and self._listener is not None:
            self._accepting = False
            asyncio.get_running_loop().remove_reader(self._listener)

    async def refuse(self) -> None:
        """Stop listening: newcomers are refused. Open connections stay, and so does the port."""
        await self.stop_accepting()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            self._held.hold(self._host, self._port)

    async def close(self) -> None:
        """End everything."""
        await self.refuse()
        self._held.let_go()
        self.cut(reset=True)
        if self._links:
            await asyncio.wait(self._links)

    def _on(self, way: Way) -> list[_Manners]:
        return [manners for each, manners in self._manners.items() if each & way]

    def _accept(self, listener: socket.socket) -> None:
        try:
            client, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        self.accepted += 1
        link = _ProxiedConnection(client, parse_address(self.target), self._manners)
        task = asyncio.create_task(link.run())
        link.task = task
        self._links[task] = link
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._links.pop(task).close()


class _ProxiedConnection:
    """One client's connection and ours to the server on its behalf."""

    def __init__(
        self, client: socket.socket, target: Address, manners: dict[Way, _Manners]
    ) -> None:
        self.lossy = False
        self.task: asyncio.Task[None] | None = None
        self._client = client
        self._target = target
        self._server = socket.socket(socket.AF_INET6 if ":" in target.host else socket.AF_INET)
        self._manners = manners
        self._reset = False

    def cut(self, *, reset: bool) -> None:
        """End it in one of the next turns of the loop."""
        self._reset = self._reset or reset
        if self.task is not None:
            self.task.cancel()

    async def run(self) -> None:
        """Pass bytes both ways until both ends are closed, or one breaks."""
        for end in (self._client, self._server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await asyncio.get_running_loop().sock_connect(self._server, self._target)
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(self._client, self._server, Way.TO_SERVER))
                pumps.create_task(self._pump(self._server, self._client, Way.TO_CLIENT))
        except* OSError:  # one side was reset: so is the other
            self._reset = True

    def close(self) -> None:
        """Close both sockets; nothing waits for them any more."""
        for end in (self._client, self._server):
            with suppress(OSError):
                if self._reset:
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                else:
                    end.shutdown(socket.SHUT_WR)  # unread bytes would turn a close into RST
            end.close()

    async def _pump(self, source: socket.socket, sink: socket.socket, way: Way) -> None:
        manners = self._manners[way]
        while True:
            data = await self._unusual(source, sink, manners)
            await manners.gate.wait()
            if manners.swallow:
                self.lossy = True
                if not data:
                    await asyncio.Event().wait()  # the end is swallowed, too
                continue
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return
            await self._pass_on(data, sink, manners)

    async def _unusual(
        self, source: socket.socket, sink: socket.socket, manners: _Manners
    ) -> bytes:
        """Pass bytes on as they come, until some need more than that; return those.

        Nearly all pass so: the loop's callback does it, as a task would be woken for each piece.
        """
        loop = asyncio.get_running_loop()
        found: asyncio.Future[bytes] = loop.create_future()

        def readable() -> None:
            if found.done():
                return
            try:
                data = source.recv(_CHUNK)
                if data and manners.plain:
                    sent = _send(sink, data)
                    manners.passed += sent
                    data = data[sent:]
                    if not data:
                        return
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                found.set_exception(error)
            else:
                found.set_result(data)
            loop.remove_reader(source)

        loop.add_reader(source, readable)
        try:
            return await found
        finally:
            loop.remove_reader(source)

    async def _pass_on(self, data: bytes, sink: socket.socket, manners: _Manners) -> None:
        loop = asyncio.get_running_loop()
        if manners.delay:
            await asyncio.sleep(manners.delay)
        data = manners.spoil(data)
        cut = 0 <= manners.cut_at <= manners.passed + len(data)
        if cut:
            data = data[: manners.cut_at - manners.passed]
            manners.cut_at = -1
        manners.passed += len(data)
        size = manners.piece or len(data) or 1
        for start in range(0, len(data), size):
            if start:
                await asyncio.sleep(manners.pause)
            await loop.sock_sendall(sink, data[start : start + size])
        if cut:
            self.cut(reset=manners.cut_resets)


def _send(sink: socket.socket, data: bytes) -> int:
    """Send what the kernel takes at once, and return how much that was."""
    try:
        return sink.send(data)
    except (BlockingIOError, InterruptedError):
        return 0
