"""Callbacks about queues: in order, beside everything else, without harm."""

import asyncio
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from pocketmq.balance.allocation import Average
from pocketmq.client import callbacks, tasks
from pocketmq.client.group import member as shared_member
from pocketmq.model import MessageQueue
from tests.client.group.groups import Member, cluster, member, queues_of, send, shared
from tests.loops import until

AVG = Average()
Queues = Sequence[MessageQueue]


@pytest.fixture
def brief_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the times that a stop waits for callbacks, which are 3 s each."""
    monkeypatch.setattr(shared_member, "STOP_PATIENCE", 0.1)
    monkeypatch.setattr(tasks, "CANCEL_WAIT", 0.1)


async def test_listeners_hear_of_queues_that_come_and_go() -> None:
    story: list[tuple[str, int]] = []
    async with cluster(1, 4) as running:
        one = Member(running.address, "a")
        one.consumer.subscribe("orders", "*", one.handle)

        @one.consumer.on_assigned
        async def assigned(queues: Queues) -> None:
            story.append(("assigned", len(queues)))

        @one.consumer.on_revoked
        def revoked(queues: Queues) -> None:
            assert threading.current_thread() is not threading.main_thread()
            story.append(("revoked", len(queues)))

        async with one.consumer:
            await until(lambda: story == [("assigned", 4)], "all queues")
            async with member(running.address, "b") as other:
                await shared([one, other], queues_of(1, 4), AVG)
                await until(lambda: story[1:] == [("revoked", 2)], "half of them to go")
            await until(lambda: story[2:] == [("assigned", 2)], "them to come back")
        assert story[3:] == [("revoked", 4)]


async def test_a_listener_that_is_slow_or_raises_does_no_harm() -> None:
    calls: list[str] = []
    gate = asyncio.Event()
    async with cluster(1, 4) as running:
        one = Member(running.address, "a")
        one.consumer.subscribe("orders", "*", one.handle)

        @one.consumer.on_assigned
        async def slow(queues: Queues) -> None:
            calls.append("slow")
            await gate.wait()

        def raising(queues: Queues) -> None:
            calls.append("raising")
            raise ValueError("no")

        one.consumer.on_assigned(raising)

        @one.consumer.on_revoked
        async def last(queues: Queues) -> None:
            calls.append("last")

        async with one.consumer:
            await shared([one], queues_of(1, 4), AVG)
            await send(running.address, 8)
            await until(lambda: len(one.got) == 8, "messages all the same")
            async with member(running.address, "b") as other:
                await shared([one, other], queues_of(1, 4), AVG)
            await shared([one], queues_of(1, 4), AVG)
            assert calls == ["slow"]
            gate.set()
        assert calls == ["slow", "raising", "last", "slow", "raising", "last"]


@pytest.mark.usefixtures("brief_patience")
async def test_a_listener_that_never_ends_does_not_hold_up_a_stop() -> None:
    async with cluster(1, 1) as running:
        one = Member(running.address, "a")
        one.consumer.subscribe("orders", "*", one.handle)

        @one.consumer.on_revoked
        async def stuck(queues: Queues) -> None:
            await asyncio.Event().wait()

        async with one.consumer:
            await shared([one], queues_of(1, 1), AVG)
        assert not one.consumer.running


@pytest.mark.usefixtures("brief_patience")
async def test_listeners_that_are_stuck_take_nothing_from_others() -> None:
    """Not the threads in which host names are looked up, and nothing of the program's end."""
    gate = threading.Event()
    threads: list[threading.Thread] = []
    async with cluster(1, 1) as running:
        one = Member(running.address, "a")
        one.consumer.subscribe("orders", "*", one.handle)

        @one.consumer.on_assigned
        def stuck(queues: Queues) -> None:
            threads.append(threading.current_thread())
            gate.wait(30.0)

        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        async with one.consumer:
            await until(lambda: len(threads) == 1, "the call")
            async with asyncio.timeout(5.0):
                await loop.run_in_executor(None, int)
        assert threads[0].daemon
        gate.set()


@pytest.mark.parametrize("error", [SystemExit(3), StopIteration(), asyncio.CancelledError()])
async def test_whatever_a_listener_raises_stays_there(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "AGAIN_AFTER", 0.0)
    calls: list[str] = []
    async with cluster(1, 1) as running:
        one = Member(running.address, "a")
        one.consumer.subscribe("orders", "*", one.handle)

        def raising(queues: Queues) -> None:
            calls.append("plain")
            raise error

        async def raising_too(queues: Queues) -> None:
            calls.append("coroutine")
            if not isinstance(error, StopIteration):
                raise error

        one.consumer.on_assigned(raising)
        one.consumer.on_assigned(raising_too)

        @one.consumer.on_assigned
        async def last(queues: Queues) -> None:
            calls.append("last")

        told = signal.signal(signal.SIGINT, lambda *_: calls.append("told"))
        try:
            async with one.consumer:
                await until(lambda: "last" in calls, "all calls")
        finally:
            signal.signal(signal.SIGINT, told)
        heard = [each for each in calls if each != "told"]
        assert heard == ["plain", "coroutine", "last"]
        assert ("told" in calls) is isinstance(error, SystemExit)


@pytest.mark.usefixtures("brief_patience")
async def test_a_coroutine_listener_that_ignores_its_cancellation_does_not_hold_up_a_stop() -> None:
    ended = asyncio.Event()
    async with cluster(1, 1) as running:
        one = Member(running.address, "a")
        one.consumer.subscribe("orders", "*", one.handle)

        @one.consumer.on_revoked
        async def stubborn(queues: Queues) -> None:
            while not ended.is_set():
                with suppress(asyncio.CancelledError):
                    await ended.wait()

        async with asyncio.timeout(20.0), one.consumer:
            await shared([one], queues_of(1, 1), AVG)
        assert not one.consumer.running
    ended.set()
