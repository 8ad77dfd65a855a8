"""Clients that send nonsense, read nothing or vanish: others are served as before."""

import asyncio
import gc
import logging
import random
from typing import Any

import grpc.aio
import pytest
from google.protobuf import message_factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pocketmq.proxy.clients import MOST_WAITING, TelemetryStream
from pocketmq.proxy.wire import service as s
from pocketmq.proxy.wire.schema import POOL, SERVICE
from tests.loops import until
from tests.proxy.peers import Peer, code, receive_request, serving

ONE_WAY_IN = [
    method for method in POOL.FindServiceByName(SERVICE).methods if not method.client_streaming
]


async def test_random_bytes_on_every_method_break_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    noise = random.Random(7)
    async with serving() as served:
        calls = [
            finish(served.peer, method, noise.randbytes(size))
            for method in ONE_WAY_IN
            for size in (0, 1, 7, 100)
        ]
        await asyncio.gather(*calls)
        assert code(await served.peer.send("normal", b"x")) == "OK"
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]
    gc.collect()


async def test_random_fields_on_every_method_break_nothing() -> None:
    """Requests that can be read, with all their fields set to random values."""
    chance = random.Random(11)
    async with serving() as served:
        calls = [
            finish(served.peer, method, filled(method.input_type, chance).SerializeToString())
            for method in ONE_WAY_IN
            for _ in range(5)
        ]
        await asyncio.gather(*calls)
        assert code(await served.peer.send("normal", b"x")) == "OK"
    gc.collect()


async def finish(peer: Peer, method: Any, request: bytes) -> None:
    """Make a call with raw bytes and wait for its end, whatever it is."""
    kind = peer.channel.unary_stream if method.server_streaming else peer.channel.unary_unary
    call: Any = kind(f"/{SERVICE}/{method.name}")(request, metadata=peer.metadata, timeout=2)
    assert await call.code() is not grpc.StatusCode.UNKNOWN  # what a handler that fails gives


def filled(descriptor: Any, chance: random.Random, depth: int = 3) -> Any:
    """A message with a random value in each field."""
    made = message_factory.GetMessageClass(descriptor)()
    words = ["", "normal", "g", "a b", "\x01", "x" * 300, "0 1 2 3 0 broker-0 0 0 0", "é"]
    numbers = [0, 1, -1, 7, 2**31 - 1, -(2**31)]
    for field in descriptor.fields:
        several = field.is_repeated if hasattr(field, "is_repeated") else field.label == 3
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            getattr(made, field.name)[chance.choice(words)] = chance.choice(words)
        elif field.message_type is not None:
            if depth:
                inner = filled(field.message_type, chance, depth - 1)
                target = getattr(made, field.name)
                target.add().CopyFrom(inner) if several else target.CopyFrom(inner)
        else:
            value: Any = chance.choice(numbers)
            if field.cpp_type == field.CPPTYPE_STRING:
                word = chance.choice(words)
                value = word.encode() if field.type == field.TYPE_BYTES else word
            elif field.cpp_type == field.CPPTYPE_BOOL:
                value = chance.random() < 0.5
            if several:
                getattr(made, field.name).append(value)
            else:
                setattr(made, field.name, value)
    return made


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=20)
@given(st.integers(1, 50))
def test_commands_that_a_client_does_not_read_end_its_stream(more: int) -> None:
    async def story() -> None:
        ended = []
        stream = TelemetryStream(lambda: ended.append(True))
        sent = [stream.send(s.TelemetryCommand()) for _ in range(MOST_WAITING + more)]
        assert sent == [True] * MOST_WAITING + [False] * more
        assert len(ended) == more

    asyncio.run(story())


async def test_five_hundred_clients_poll_at_once_and_each_message_reaches_one() -> None:
    async with serving() as served:
        await served.peer.receive("normal", "g")
        request = receive_request("normal", "g", wait=15, batch_size=1)

        got: list[bytes] = []

        async def poll(number: int) -> None:
            channel = channels[number % len(channels)]
            peer = Peer(channel, served.proxy.address, f"c@{number}")
            async for each in peer.stream("ReceiveMessage", request):
                if each.HasField("message"):
                    got.append(each.message.body)
                    handle = each.message.system_properties.receipt_handle
                    assert code(await peer.ack("normal", "g", handle)) == "OK"

        channels = [grpc.aio.insecure_channel(served.proxy.address) for _ in range(20)]
        polls = [asyncio.create_task(poll(number)) for number in range(500)]
        await served.polled("normal", "g")
        bodies = [b"%d" % number for number in range(40)]
        for body in bodies:
            assert code(await served.peer.send("normal", body)) == "OK"
        await until(lambda: len(got) >= len(bodies), "all messages", 20)
        for each in polls:
            each.cancel()
        await asyncio.wait(polls)
        for channel in channels:
            await channel.close()
        assert sorted(got) == sorted(bodies)
        polls.clear()
    del each
    gc.collect()  # calls that were cancelled refer to their channel
