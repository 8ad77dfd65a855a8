"""A broker on a loop of its own thread, for tests that block."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.net import Address
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from tests.loops import LeapingLoop


@contextmanager
def background(data: Path | None = None, **settings: Any) -> Iterator[Address]:
    """Run a broker beside the test and give its address."""
    ready: list[Address | BaseException] = []
    started = threading.Event()
    stop: list[asyncio.Event] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        standard: dict[str, Any] = {"listen_port": 0, "bind_address": "127.0.0.1"}
        broker = Broker(BrokerConfig(**standard | settings), data)
        stop.append(asyncio.Event())
        loops.append(asyncio.get_running_loop())
        try:
            ready.append(await broker.start())
        finally:
            started.set()
        await stop[0].wait()
        await broker.stop()

    def run() -> None:
        # No request is refused for having waited while this process got no processor.
        with asyncio.Runner(loop_factory=LeapingLoop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run)
    thread.start()
    started.wait(20)
    assert isinstance(ready[0], Address)
    try:
        yield ready[0]
    finally:
        loops[0].call_soon_threadsafe(stop[0].set)
        thread.join(20)


class Caller:
    """A blocking client: commands out, commands in, as they are."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, 20)
        self._reader = FrameReader()
        self._received: list[Command] = []
        self._opaque = 0
        self.local_address = str(Address(*self._socket.getsockname()[:2]))

    def post(
        self,
        code: int,
        ext: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        oneway: bool = False,
        serialize: int = 0,
    ) -> int:
        self._opaque += 1
        request = Command.request(code, self._opaque, ext, body, oneway=oneway, serialize=serialize)
        self._socket.sendall(request.encode())
        return self._opaque

    def receive(self) -> Command:
        while not self._received:
            data = self._socket.recv(1 << 20)
            assert data, "the broker hung up"
            self._received += map(read_command, self._reader.feed(data))
        return self._received.pop(0)

    def ask(
        self,
        code: int,
        ext: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        serialize: int = 0,
    ) -> Command:
        number = self.post(code, ext, body, serialize=serialize)
        answer = self.receive()
        assert (answer.opaque, answer.serialize) == (number, serialize)
        return answer

    def close(self) -> None:
        self._socket.close()
