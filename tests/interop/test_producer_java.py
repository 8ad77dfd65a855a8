"""Our producer on Java's broker, and a Java consumer that reads what it sent."""

import asyncio
import os
import time
import zlib
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from pocketmq import errors
from pocketmq.balance.producer.selectors import by_hash
from pocketmq.client.producer.producer import Producer
from pocketmq.model import Message, MessageQueue, SysFlag
from pocketmq.model.kinds import COMPRESSION_MASK
from pocketmq.protocol.compression import Codec
from pocketmq.protocol.handles import RecallHandle
from tests.interop.jvm import Jars, Process, named_broker, wait_until
from tests.ports import free_port

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

Row = dict[str, str]


class Java:
    """A Java name server with a Java broker."""

    def __init__(self, jars: Jars, home: Path) -> None:
        self.jars = jars
        self.home = home
        self.port = free_port()
        self.address = f"127.0.0.1:{free_port()}"

    def reader(self, topic: str, expression: str = "*", *more: str) -> "Reader":
        words = [self.address, topic, expression, *more]
        return Reader(self.jars.compiled(self.home, "Reading", *words), self.home)


class Reader(Process):
    """A Java consumer."""

    @property
    def rows(self) -> list[Row]:
        said = [line[4:] for line in list(self.lines) if line.startswith("got ")]
        return [dict(word.split("=", 1) for word in line.split("|")) for line in said]

    def wait_for(self, count: int) -> list[Row]:
        wait_until(lambda: len(self.rows) >= count, f"{count} messages")
        return self.rows


@pytest.fixture(scope="module")
def java(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Java]:
    made = Java(jars, tmp_path_factory.mktemp("java"))
    (made.home / "broker").mkdir()
    settings = {
        "brokerName": "java-broker",
        "listenPort": made.port,
        "defaultTopicQueueNums": 4,
        "recallMessageEnable": "true",
    }
    with named_broker(jars, made.home / "broker", made.address, **settings):
        yield made


def on_a_loop(story: Callable[[Java], Coroutine[Any, Any, None]]) -> Callable[[Java], None]:
    """Make a test of a coroutine function."""

    @wraps(story)
    def run(java: Java) -> None:
        asyncio.run(story(java))

    return run


async def send_until_taken(producer: Producer, message: Message) -> None:
    """Send while the broker is still starting."""
    deadline = time.monotonic() + 90
    while True:
        try:
            await producer.send(message)
        except errors.MQError:
            assert time.monotonic() < deadline
        else:
            return


def ours(java: Java, **settings: object) -> Producer:
    defaults: dict[str, object] = {"send_timeout": 20.0, "start_wait": 120.0}
    return Producer(java.address, group="python-shop", **defaults | settings)  # type: ignore[arg-type]


def codec_of(row: Row) -> SysFlag | None:
    """Return how the body was packed in the broker's log, `stored` bytes with all about it.

    5.x takes the first bit of the flag away once it has unpacked a body; the codec's bits stay.
    """
    packed = int(row["stored"]) < int(row["size"])
    return SysFlag(int(row["system"]) & COMPRESSION_MASK) if packed else None


@on_a_loop
async def test_java_reads_what_we_send(java: Java) -> None:
    async with ours(java) as producer:
        await send_until_taken(producer, Message("first", b"hello"))
        message = Message(
            "reading",
            b"42 EUR",
            tag="paid",
            keys=["A17", "B2"],
            properties={"region": "größe"},
            flag=9,
        )
        plain = await producer.send(message)
        large = await producer.send(Message("reading", b"large " * 2000, tag="paid"))
        pinned = MessageQueue("reading", "java-broker", 2)
        chosen = await producer.send(Message("reading", b"chosen"), queue=pinned)
        assert chosen.queue == pinned
        await producer.send_oneway(Message("reading", b"one way"))
        batch = await producer.send_batch(
            [Message("reading", b"b%d" % n, tag="t") for n in range(5)]
        )
        with java.reader("reading") as reader:
            rows = {row["begin"]: row for row in reader.wait_for(9)}
        first = rows["42 EUR"]
        assert (first["id"], first["tag"], first["keys"]) == (plain.message_id, "paid", "A17 B2")
        assert (first["region"], first["flag"]) == ("größe", "9")
        assert (first["queue"], first["offset"]) == (
            str(plain.queue.queue_id),
            str(plain.queue_offset),
        )
        assert int(first["pid"]) == os.getpid() & 0xFFFF
        assert abs(int(first["born"])) <= 5  # minutes
        assert codec_of(first) is None
        assert codec_of(rows["large la"]) is SysFlag.ZLIB
        assert (rows["large la"]["size"], rows["large la"]["id"]) == ("12000", large.message_id)
        assert int(rows["large la"]["crc"]) == zlib.crc32(b"large " * 2000) & 0x7FFFFFFF
        assert rows["chosen"]["queue"] == "2"
        assert "one way" in rows
        ids = [rows[f"b{number}"]["id"] for number in range(5)]
        assert ",".join(ids) == batch.message_id


@on_a_loop
async def test_tags_select_and_keys_choose_as_in_java(java: Java) -> None:
    queues = [MessageQueue("choosing", "java-broker", number) for number in range(4)]
    keys = ["customer-7", "", "größe", "\U0001f600"]
    async with ours(java) as producer:
        await send_until_taken(producer, Message("choosing", b"x", tag="other"))
        for key in keys:
            receipt = await producer.send(Message("choosing", b"y", tag="mine"), ordering_key=key)
            assert receipt.queue == by_hash(queues, key)
        with java.reader("choosing", "mine") as reader:
            rows = reader.wait_for(4)
            assert {row["tag"] for row in rows} == {"mine"}
            hashes = [int(line[5:]) for line in reader.lines if line.startswith("hash ")]
        assert hashes == [by_hash(queues, key).queue_id for key in keys]


@on_a_loop
async def test_other_codecs_are_read_by_java(java: Java) -> None:
    for codec in (Codec.LZ4, Codec.ZSTD):
        async with ours(java, compression=codec) as producer:
            await send_until_taken(producer, Message(f"packed-{codec.name}", b"large " * 2000))
        with java.reader(f"packed-{codec.name}") as reader:
            (row,) = reader.wait_for(1)
        assert (codec_of(row), row["size"]) == (SysFlag[codec.name], "12000")
        assert int(row["crc"]) == zlib.crc32(b"large " * 2000) & 0x7FFFFFFF


@on_a_loop
async def test_a_level_holds_a_message_back_as_long(java: Java) -> None:
    async with ours(java) as producer:
        await send_until_taken(producer, Message("delayed", b"now"))
        await producer.send(Message("delayed", b"level"), delay_level=2)
        with java.reader("delayed") as reader:
            rows = {row["begin"]: row for row in reader.wait_for(2)}
        assert int(rows["level"]["waited"]) >= 4900


@pytest.mark.line("5.x")  # 4.x knows levels alone
@on_a_loop
async def test_a_delay_or_a_moment_holds_a_message_back_unless_it_is_taken_back(java: Java) -> None:
    async with ours(java) as producer:
        await send_until_taken(producer, Message("timed", b"now"))
        receipt = await producer.send(Message("timed", b"delay"), delay=3.0)
        assert receipt.recall_handle
        await producer.send(Message("timed", b"moment"), deliver_at=time.time() + 4.0)
        gone = await producer.send(Message("timed", b"gone"), delay=5.0)
        assert gone.recall_handle is not None
        assert await producer.recall("timed", gone.recall_handle) == gone.message_id
        await producer.send(Message("timed", b"last"), delay=6.0)
        with java.reader("timed") as reader:
            rows = {row["begin"]: row for row in reader.wait_for(4)}
        assert 2000 <= int(rows["delay"]["waited"]) <= 15_000
        assert 3000 <= int(rows["moment"]["waited"]) <= 15_000
        assert rows.keys() == {"now", "delay", "moment", "last"}


@pytest.mark.line("4.x")
@on_a_loop
async def test_recalling_is_unknown_to_java_4(java: Java) -> None:
    handle = RecallHandle(topic="first", broker_name="java-broker", deliver_at_ms=1, message_id="A")
    async with ours(java) as producer:
        await send_until_taken(producer, Message("first", b"hello"))
        with pytest.raises(errors.RequestNotSupported):
            await producer.recall("first", str(handle))


@on_a_loop
async def test_a_namespace_is_the_one_of_java(java: Java) -> None:
    async with ours(java, namespace="prod") as producer:
        await send_until_taken(producer, Message("spaced", b"x"))
        with java.reader("spaced", "*", "prod") as reader:
            assert reader.wait_for(1)[0]["topic"] == "spaced"


@on_a_loop
async def test_refusals_of_java_are_typed_errors(java: Java) -> None:
    async with ours(java, max_message_size=1 << 25, compress_from=1 << 25) as producer:
        await send_until_taken(producer, Message("first", b"hello"))
        with pytest.raises(errors.SendFailed) as caught:
            await producer.send(Message("first", b"x" * (5 << 20)))
        assert isinstance(caught.value.last_error, errors.MessageIllegal)
        assert not caught.value.outcome_unknown
        await producer.sending.publishing.find("first", 5.0)
        publication = producer.sending.publishing.ready("first")
        assert publication is not None
        publication.queues = (MessageQueue("first", "java-broker", 99),)
        with pytest.raises(errors.SendFailed) as caught:
            await producer.send(Message("first", b"x"))
        assert isinstance(caught.value.last_error, errors.ServerError)
