"""A proxy in front of one broker that knows requests from bytes: each can be held up or refused.

`embedded.fault_proxy` delays pieces one after another, so that requests in flight on one connection
would wait for each other. Here each response waits by itself, as if its request had been slow.
"""

import asyncio
import random

from pocketmq.protocol import RequestCode
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader

SENDS = {int(RequestCode.SEND_MESSAGE_V2), int(RequestCode.SEND_BATCH_MESSAGE)}


class SlowProxy:
    """Listens at `host:port`, leads to `port` of 127.0.0.1; all responses take `delay` longer."""

    def __init__(self, host: str, port: int, delay: float) -> None:
        self.delay = delay
        """Seconds that each response is held up."""
        self.refused = 0.0
        """The part of sends that is refused as by a busy broker."""
        self._host, self._port = host, port
        self._random = random.Random(port)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._host, self._port)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        pumps = [
            asyncio.create_task(self._to_broker(reader, back, writer)),
            asyncio.create_task(self._to_client(there, writer)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        back.transport.abort()
        writer.transport.abort()

    async def _to_broker(
        self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, client: asyncio.StreamWriter
    ) -> None:
        while head := await reader.readexactly(4):
            body = await reader.readexactly(int.from_bytes(head, "big"))
            if self.refused and self._random.random() < self.refused:
                (frame,) = FrameReader(1 << 26).feed(head + body)
                request = read_command(frame)
                if request.code in SENDS:
                    answer = request.reply(2, "[TIMEOUT_CLEAN_QUEUE]broker busy").encode()
                    self._later(client, bytes(answer))
                    continue
            back.write(head + body)

    async def _to_client(self, there: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        while head := await there.readexactly(4):
            self._later(client, head + await there.readexactly(int.from_bytes(head, "big")))

    def _later(self, client: asyncio.StreamWriter, data: bytes) -> None:
        asyncio.get_running_loop().call_later(self.delay, client.write, data)
