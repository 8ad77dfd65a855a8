"""Hundreds who wait on a few queues: each message goes to one of them, in the order they came.

Also what becomes of those who leave.
"""

import asyncio
from contextlib import AsyncExitStack

import pytest

from pocketmq.broker.pop import waiting
from pocketmq.errors import ResponseCode
from pocketmq.protocol import RequestCode as Code
from tests.broker.pop.counter import ack, bodies, committed, create, got, pop_fields, send, serving
from tests.broker.running import client, running
from tests.loops import until

T = "crowded"
MEMBERS = 300


async def test_every_message_wakes_one_who_waits() -> None:
    async with running() as (broker, address), AsyncExitStack() as stack:
        peer = await stack.enter_async_context(client(address))
        await create(peer, T, 3)
        members = [await stack.enter_async_context(client(address)) for _ in range(MEMBERS)]
        fields = pop_fields(T, maxMsgNums=1, pollTime=60_000, invisibleTime=60_000)
        pops = serving(broker)
        posted = []
        for member in members:
            posted.append(member.post(Code.POP_MESSAGE, fields))
            await until(lambda: len(pops.waiting) == len(posted), "it to wait")
        for n in range(MEMBERS):
            await send(peer, T, f"{n}", queue=n % 3)

        async def finish(n: int) -> bytes:
            (message,) = got(await members[n].answer(posted[n]), T)
            await ack(members[n], T, message)
            return message.body

        bodies = await asyncio.gather(*map(finish, range(MEMBERS)))
        assert bodies == [b"%d" % n for n in range(MEMBERS)]
        assert [await committed(peer, T, queue=queue) for queue in range(3)] == [100, 100, 100]


async def test_those_who_are_gone_get_nothing() -> None:
    async with running() as (broker, address), client(address) as peer:
        await create(peer, T)
        pops = serving(broker)
        async with client(address) as member:
            for _ in range(5):
                member.post(Code.POP_MESSAGE, pop_fields(T, pollTime=60_000))
            await until(lambda: len(pops.waiting) == 5, "all to wait")
        await until(lambda: not len(pops.waiting), "nobody to wait")
        await send(peer, T, "a")
        posted = peer.post(Code.POP_MESSAGE, pop_fields(T, pollTime=60_000))
        assert len(got(await peer.answer(posted), T)) == 1


async def test_fields_that_nobody_reads_count_as_memory_of_those_who_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(waiting, "SIZE_LIMIT", 1 << 20)
    async with running() as (broker, address), client(address) as peer:
        await create(peer, T)
        fields = pop_fields(T, pollTime=60_000)
        large = {**fields, "other": "x" * (600 << 10)}
        peer.post(Code.POP_MESSAGE, large)
        pops = serving(broker)
        await until(lambda: len(pops.waiting) == 1, "the first to wait")
        assert (await peer.ask(Code.POP_MESSAGE, large)).code == ResponseCode.POLLING_FULL
        peer.post(Code.POP_MESSAGE, fields)
        await until(lambda: len(pops.waiting) == 2, "a small one to wait")


async def test_whoever_has_waited_longest_is_served_first_whatever_queue_it_pops() -> None:
    async with running() as (broker, address), client(address) as peer, client(address) as other:
        await create(peer, T)
        posted = []
        for queue in (-1, 0, -1, 0):
            posted.append(
                peer.post(Code.POP_MESSAGE, pop_fields(T, pollTime=10_000, queueId=queue))
            )
            await until(lambda: len(serving(broker).waiting) == len(posted), "the pop to be held")
        for number, body in zip(posted, "abcd", strict=True):
            await send(other, T, body)
            assert bodies(got(await peer.answer(number), T)) == [body]


async def test_several_messages_at_once_are_given_to_those_who_wait_in_turn() -> None:
    async with running() as (broker, address), client(address) as peer, client(address) as other:
        await create(peer, T)
        posted = []
        for queue in (-1, -1, 0, 0):
            fields = pop_fields(T, pollTime=10_000, queueId=queue, maxMsgNums=1)
            posted.append(peer.post(Code.POP_MESSAGE, fields))
            await until(lambda: len(serving(broker).waiting) == len(posted), "the pop to be held")
        await send(other, T, *"abcd")
        answers = [bodies(got(await peer.answer(number), T)) for number in posted]
        assert answers == [["a"], ["b"], ["c"], ["d"]]


async def test_pops_of_a_client_that_leaves_its_group_are_answered() -> None:
    """Those of its other groups go on, and messages go to who is left."""
    async with running() as (broker, address), client(address) as peer, client(address) as other:
        await create(peer, T)
        leaving = peer.post(Code.POP_MESSAGE, pop_fields(T, pollTime=10_000))
        staying = peer.post(Code.POP_MESSAGE, pop_fields(T, "H", pollTime=10_000))
        await until(lambda: len(serving(broker).waiting) == 2, "the pops to be held")
        theirs = other.post(Code.POP_MESSAGE, pop_fields(T, pollTime=10_000))
        await until(lambda: len(serving(broker).waiting) == 3, "the other's pop to be held")
        left = peer.post(Code.UNREGISTER_CLIENT, {"clientID": "c", "consumerGroup": "G"})
        assert (await peer.answer(leaving)).code == 210
        assert (await peer.answer(left)).code == 0
        async with client(address) as sender:
            await send(sender, T, "a")
        assert bodies(got(await other.answer(theirs), T)) == ["a"]
        assert bodies(got(await peer.answer(staying), T)) == ["a"]
