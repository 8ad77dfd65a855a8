"""A name server on a real socket, and peers that speak to it in raw frames."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from pocketmq.model import DataVersion, TopicConfig
from pocketmq.nameserver import NameServer, NameServerConfig
from pocketmq.protocol import Command
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.registration import Registration, encode_registration
from pocketmq.protocol.requests.topics import TopicTableBody

LIMIT = 1 << 24


class Peer:
    """One connection, asking one thing after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.frames = FrameReader(LIMIT)
        self.opaque = 0

    @classmethod
    async def to(cls, server: NameServer, host: str = "127.0.0.1") -> "Peer":
        """Connect from a host; all of 127.0.0.0/8 are this machine's."""
        assert server.address is not None
        address = server.address
        return cls(*await asyncio.open_connection(address.host, address.port, local_addr=(host, 0)))

    def send(
        self,
        code: int,
        ext: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        version: int = 513,
        oneway: bool = False,
        serialize: int = 0,
    ) -> None:
        self.opaque += 1
        request = Command.request(code, self.opaque, ext, body, oneway=oneway, serialize=serialize)
        self.writer.write(msgspec.structs.replace(request, version=version).encode())

    async def receive(self) -> Command:
        while True:
            data = await asyncio.wait_for(self.reader.read(1 << 16), 10)
            assert data, "the name server hung up"
            for frame in self.frames.feed(data):
                return read_command(frame)

    async def ask(
        self, code: int, ext: dict[str, str] | None = None, body: bytes = b"", **how: int
    ) -> Command:
        self.send(code, ext, body, **how)  # type: ignore[arg-type]
        reply = await self.receive()
        assert (reply.opaque, reply.is_response) == (self.opaque, True)
        return reply

    async def register(
        self, name: str, broker_id: int, address: str, *names: str, **ext: str
    ) -> Command:
        return await self.ask(103, broker_fields(name, broker_id, address) | ext, topics(*names))

    async def hung_up(self) -> bool:
        """Wait until the other side has closed the connection."""
        return await asyncio.wait_for(self.reader.read(), 10) == b""

    async def close(self) -> None:
        self.writer.close()
        await asyncio.wait_for(self.writer.wait_closed(), 10)


def broker_fields(name: str, broker_id: int, address: str) -> dict[str, str]:
    return {
        "brokerName": name,
        "brokerAddr": address,
        "clusterName": "c",
        "haServerAddr": "h:1",
        "brokerId": str(broker_id),
    }


def topics(*names: str) -> bytes:
    table = TopicTableBody(
        data_version=DataVersion(counter=1, timestamp=1),
        topic_config_table={name: TopicConfig(topic_name=name) for name in names},
    )
    return encode_registration(Registration(topics=table))


@asynccontextmanager
async def running(
    config: NameServerConfig | None = None, data: Path | None = None
) -> AsyncIterator[NameServer]:
    server = NameServer(config, data)
    await server.start("127.0.0.1", 0)
    try:
        yield server
    finally:
        await server.stop()
