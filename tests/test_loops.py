"""The loop of coroutine tests: time in which it has no processor does not pass for what is on it."""

import asyncio
import socket
import time

import pytest

from pocketmq.broker.upkeep.housekeeping import SMALLEST_JUMP, ClockWatch
from tests.broker.tables import Clock
from tests.loops import OwnTimeLoop

AWAY = 0.3


def be_away() -> None:
    """Do nothing for a while and say nothing to the loop, as a thread without a processor."""
    time.sleep(AWAY)


async def test_no_time_passes_while_the_loop_has_no_processor() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, OwnTimeLoop)
    began = loop.time()
    be_away()
    assert loop.time() - began < AWAY / 2


async def test_what_has_arrived_meanwhile_is_not_late() -> None:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        reading = asyncio.ensure_future(loop.sock_recv(ours, 10))
        await asyncio.sleep(0)
        async with asyncio.timeout(AWAY / 2):
            theirs.send(b"answer")
            be_away()
            assert await reading == b"answer"


async def test_waiting_and_working_take_their_time() -> None:
    loop = asyncio.get_running_loop()
    real, began = time.monotonic(), loop.time()
    await asyncio.sleep(0.05)
    assert 0.049 < loop.time() - began < time.monotonic() - real + 0.01
    began, worked = loop.time(), time.thread_time()
    while time.thread_time() < worked + 0.05:
        pass
    assert loop.time() - began > 0.049


async def test_other_threads_see_the_time_of_the_loop() -> None:
    loop = asyncio.get_running_loop()
    before = loop.time()
    seen = await asyncio.to_thread(loop.time)
    assert before <= seen <= loop.time()


async def test_brokers_do_not_take_the_difference_for_a_clock_that_was_set(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    watch = ClockWatch(clock, clock.steady)
    clock.off += SMALLEST_JUMP
    watch.look()
    assert caplog.messages == []
    clock.off -= SMALLEST_JUMP
    watch.look()
    assert len(caplog.messages) == 1
