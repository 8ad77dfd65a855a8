"""A running broker on a real socket whose clock is the loop's, and the smallest client for it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pocketmq.broker.broker import Broker
from pocketmq.broker.config import BrokerConfig
from pocketmq.net import Address
from pocketmq.protocol import Command, RecordView
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.record_scan import scan_records

START = 1_700_000_000.0
TIMEOUT = 20.0


class LoopClock:
    """Wall-clock time that goes with the loop's own, so that `leap` moves both."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()

    def now(self) -> float:
        return START + self._loop.time() - self._start

    def now_ms(self) -> int:
        return int(self.now() * 1000)

    def forward(self, seconds: float) -> None:
        """Let it be later, while the loop and its timers notice nothing."""
        self._start -= seconds


@asynccontextmanager
async def running(
    data: Path | None = None, clock: LoopClock | None = None, **settings: Any
) -> AsyncIterator[tuple[Broker, Address]]:
    """Run a broker."""
    here: dict[str, Any] = {"listen_port": 0, "bind_address": "127.0.0.1"}
    config = BrokerConfig(**here | settings)
    broker = Broker(config, data, clock=clock or LoopClock())
    address = await broker.start()
    try:
        yield broker, address
    finally:
        await broker.stop()


async def flushed(broker: Broker) -> None:
    """Wait until the flusher's thread has done what it was given so far, such as a checkpoint."""
    done = asyncio.Event()
    broker.state.store.submit(lambda: None, lambda _: done.set())
    await done.wait()


class Client:
    """One connection that sends raw frames; answers are awaited one by one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = FrameReader()
        self._answers: dict[int, Command] = {}
        self._opaque = 0
        self.asked: list[Command] = []
        """What the broker asked of this client."""

    def post(
        self, code: int, ext: dict[str, str] | None = None, body: bytes = b"", version: int = 479
    ) -> int:
        """Send a request, give its number."""
        self._opaque += 1
        request = Command(code, self._opaque, ext_fields=ext or {}, body=body, version=version)
        self._writer.write(request.encode())
        return self._opaque

    def post_all(self, requests: Iterable[tuple[int, dict[str, str]]], flag: int = 0) -> list[int]:
        """Send requests in one write, so that they are read together; give their numbers."""
        numbers, frames = [], []
        for code, ext in requests:
            self._opaque += 1
            numbers.append(self._opaque)
            body = b"x"
            frames.append(
                Command(code, self._opaque, flag=flag, ext_fields=ext, body=body).encode()
            )
        self._writer.write(b"".join(frames))
        return numbers

    def post_oneway(self, code: int, ext: dict[str, str]) -> None:
        """Send a request that wants no answer."""
        self._opaque += 1
        self._writer.write(Command.request(code, self._opaque, ext, oneway=True).encode())

    @property
    def unasked(self) -> list[Command]:
        """Answers that nobody waits for."""
        return list(self._answers.values())

    async def answer(self, number: int) -> Command:
        """Return the answer to a request."""
        async with asyncio.timeout(TIMEOUT):
            while number not in self._answers:
                await self._read()
        return self._answers.pop(number)

    async def question(self) -> Command:
        """Return the next thing the broker asks."""
        async with asyncio.timeout(TIMEOUT):
            while not self.asked:
                await self._read()
        return self.asked.pop(0)

    def reply(self, question: Command, code: int = 0) -> None:
        """Answer the broker."""
        self._writer.write(question.reply(code).encode())

    def send(self, command: Command) -> None:
        """Send a command as it is."""
        self._writer.write(command.encode())

    async def _read(self) -> None:
        data = await self._reader.read(1 << 20)
        assert data, "the broker hung up"
        for command in map(read_command, self._frames.feed(data)):
            if command.is_response:
                self._answers[command.opaque] = command
            else:
                self.asked.append(command)

    async def ask(
        self, code: int, ext: dict[str, str] | None = None, body: bytes = b"", version: int = 479
    ) -> Command:
        """Send a request and give its answer."""
        return await self.answer(self.post(code, ext, body, version))

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


@asynccontextmanager
async def client(address: Address) -> AsyncIterator[Client]:
    """Connect to a broker."""
    reader, writer = await asyncio.open_connection(*address)
    connected = Client(reader, writer)
    try:
        yield connected
    finally:
        await connected.close()


def send_fields(topic: str, properties: str = "UNIQ_KEY\1K\2", **fields: str) -> dict[str, str]:
    """The fields of a send (310)."""
    standard = {"a": "PG", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "17"}
    return standard | {"h": "0", "i": properties, "j": "0", "k": "false", "m": "false"} | fields


async def appear(peer: Client, group: str, client_id: str = "someone") -> None:
    """Register a producer with the broker."""
    beat = {"clientID": client_id, "producerDataSet": [{"groupName": group}]}
    answer = await peer.ask(34, {}, json.dumps(beat | {"consumerDataSet": []}).encode())
    assert answer.code == 0, answer.remark


def pull_fields(topic: str, offset: int = 0, queue_id: int = 0, **fields: Any) -> dict[str, str]:
    """The fields of a pull (11) that waits and carries its subscription."""
    return {
        "consumerGroup": "CG",
        "topic": topic,
        "queueId": str(queue_id),
        "queueOffset": str(offset),
        "maxMsgNums": "32",
        "sysFlag": "6",
        "commitOffset": "0",
        "suspendTimeoutMillis": "30000",
        "subscription": "*",
        "subVersion": "0",
        "expressionType": "TAG",
    } | fields


def position(answer: Command) -> int:
    """Where the log holds a message that was just stored."""
    return int((answer.ext or {})["msgId"][-16:], 16)


def records(answer: Command) -> list[RecordView]:
    """The messages a pull brought."""
    return [RecordView(answer.body, found[0]) for found in scan_records(answer.body)]
