"""A read that the lane takes whole passes few Python functions, and none for each message.

A broker sleeps between sends that come one after another: what it calls then costs several times
what it costs in a burst. These numbers may fall. Before one rises, measure with
`python -m benchmarks.broker`.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import pocketmq
from tests.native.halves import Half, half_request, send_request

core = pytest.importorskip("pocketmq_core")

SOURCES = str(Path(pocketmq.__file__).parent)


def calls_of(action: Callable[[], object]) -> list[str]:
    """Return the functions of PocketMQ that an action calls, in order."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            called.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return called


async def calls_of_read(half: Half, data: bytes) -> list[str]:
    def read() -> None:
        half.connection.get_buffer(-1)[: len(data)] = data
        half.connection.buffer_updated(len(data))

    written = half.state.traffic.messages_in
    called = calls_of(read)
    assert half.state.traffic.messages_in > written, "stored and answered within the read"
    return called


async def warm() -> Half:
    half = Half(lane=True, metrics=False, segment=1 << 20)
    for queue in range(4):
        await half.read(send_request(queue))
    await half.read(half_request())
    for _ in range(40):  # queues have space in their index
        await half.read(b"".join(send_request(queue) for queue in range(4)))
    return half


async def test_a_send_that_comes_alone_passes_few_functions() -> None:
    half = await warm()
    called = await calls_of_read(half, send_request(0))
    assert len(called) <= 16, called
    half.close()


async def test_a_half_message_that_comes_alone_passes_few_functions() -> None:
    half = await warm()
    called = await calls_of_read(half, half_request(2))
    assert len(called) <= 18, called
    half.close()


async def test_a_burst_passes_as_many_functions_whatever_the_number_of_messages() -> None:
    half = await warm()
    few = b"".join(send_request(number % 4) for number in range(8))
    many = b"".join(send_request(number % 4) for number in range(40))
    numbers = [len(await calls_of_read(half, data)) for data in (few, many)]
    assert numbers[0] == numbers[1] <= 19
    half.close()
