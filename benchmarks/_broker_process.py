"""One process for the broker benchmark: a broker on a free port, or a plain server to compare with.

python -m benchmarks._broker_process broker DIRECTORY [key=value …] | plain
"""

import asyncio
import signal
import struct
import sys
from pathlib import Path

ANSWER = struct.pack(">II", 4 + 240, 240) + b" " * 240


class Plain(asyncio.Protocol):
    """Answers every frame with the same bytes: what sockets and asyncio cost by themselves."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.held = b""

    def data_received(self, data: bytes) -> None:
        data = self.held + data
        at = frames = 0
        while len(data) - at >= 4:
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if end > len(data):
                break
            at, frames = end, frames + 1
        self.held = data[at:]
        self.transport.write(ANSWER * frames)


async def serve_plain() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Plain, "127.0.0.1", 0)
    print("ready", server.sockets[0].getsockname()[1], flush=True)
    await _told_to_stop()
    server.close()


async def serve_broker(directory: str, settings: dict[str, str]) -> None:
    from pocketmq.broker.broker import Broker
    from pocketmq.broker.config import BrokerConfig

    here = {"listenPort": "0", "bindAddress": "127.0.0.1", "brokerIP1": "127.0.0.1"}
    config = BrokerConfig.from_properties(here | settings)
    broker = Broker(config, Path(directory), own_process=True)
    address = await broker.start()
    print("ready", address.port, flush=True)
    await _told_to_stop()
    await broker.stop()


async def _told_to_stop() -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    await told.wait()


def main() -> None:
    if sys.argv[1] == "plain":
        asyncio.run(serve_plain())
    else:
        settings = dict(pair.split("=", 1) for pair in sys.argv[3:])
        asyncio.run(serve_broker(sys.argv[2], settings))


if __name__ == "__main__":
    main()
