"""Callbacks about queues: in order, beside everything else, without harm."""

import asyncio
import threading
from collections.abc import Sequence

from pocketmq.balance.allocation import Average
from pocketmq.model.queue import MessageQueue
from tests.client.consumer.groups import Member, cluster, member, queues_of, send, shared
from tests.loops import until

AVG = Average()
Queues = Sequence[MessageQueue]


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
