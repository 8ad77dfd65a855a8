"""A queue that is sought, reset or corrected amid a hand-over: every instruction is still obeyed."""

import asyncio
from collections import Counter

import pytest

from pocketmq.balance.handover import events
from pocketmq.balance.handover import instructions as do
from pocketmq.client.group.held_queue import HoldState
from pocketmq.errors import InvalidInput
from pocketmq.protocol import ReceivedMessage
from tests.client.group.handover.test_queues import QUEUE, Shell, shell
from tests.loops import until


class Handler:
    """Notes what begins, and holds it while it is closed."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.began: list[int] = []

    async def __call__(self, message: ReceivedMessage) -> None:
        if message.topic == QUEUE.topic:
            self.began.append(message.queue_offset)
        await self.open.wait()


def stored(a: Shell) -> int:
    return a.commits._lines[QUEUE].stored


async def test_a_stop_while_a_seek_waits_for_a_handler_is_answered() -> None:
    handler = Handler()
    handler.open.clear()
    async with shell(orderly=True, handler=handler) as a:
        await a.send(3)
        await until(lambda: handler.began == [0], "a call")
        seeking = asyncio.create_task(a.one.consumer.seek(QUEUE, 2))
        await asyncio.sleep(0)
        assert not seeking.done()
        a.queues.stop_starting(do.StopStarting(QUEUE))
        assert a.reports == []
        handler.open.set()
        await seeking
        await until(lambda: a.reports == [events.StartingStopped(QUEUE, 2)], "the answer")
        assert handler.began == [0]
        a.queues.drain(do.Drain(QUEUE))
        await until(lambda: a.reports[1:] == [events.Drained(QUEUE)], "the end")
        assert stored(a) == 2


async def test_a_fence_while_a_seek_waits_for_a_handler_holds() -> None:
    handler = Handler()
    handler.open.clear()
    async with shell(orderly=True, handler=handler) as a:
        await a.send(3)
        await until(lambda: handler.began == [0], "a call")
        seeking = asyncio.create_task(a.one.consumer.seek(QUEUE, 1))
        await asyncio.sleep(0)
        a.queues.fence(QUEUE)
        handler.open.set()
        await seeking
        assert a.held.state is HoldState.FENCED
        assert handler.began == [0]
        a.queues.resume(QUEUE)
        await until(lambda: handler.began == [0, 1, 2], "the queue to go on")


async def test_a_seek_never_overtakes_an_orderly_call_however_long_it_takes() -> None:
    handler = Handler()
    handler.open.clear()
    async with shell(orderly=True, handler=handler) as a:
        await a.send(3)
        await until(lambda: handler.began == [0], "a call")
        assert await a.holdings.restart(a.held, 1, patience=0.01)
        await until(lambda: a.held.process.count == 2, "the fresh stay's messages")
        assert handler.began == [0]
        handler.open.set()
        await until(lambda: handler.began == [0, 1, 2], "the rest")


async def test_a_queue_that_is_about_to_go_on_after_a_fence_goes_on_after_a_seek() -> None:
    async with shell() as a:
        a.queues.fence(QUEUE)
        a.queues.resume(QUEUE)
        before = a.held
        await a.one.consumer.seek(QUEUE, 0)
        assert a.held is not before
        assert a.held.state is HoldState.FENCED
        await until(lambda: a.held.state is HoldState.OWNED, "the queue to go on")
        await a.send(1)
        await until(lambda: a.one.bodies == [b"0"], "its messages")


async def test_a_fenced_queue_stays_fenced_when_it_is_reset() -> None:
    async with shell() as a:
        await a.send(2)
        await until(lambda: len(a.one.got) == 2, "all messages")
        a.queues.fence(QUEUE)
        member = a.one.consumer._life.member
        assert member is not None
        await member.reset_offsets("orders", {QUEUE: 0})
        assert a.held.state is HoldState.FENCED
        a.queues.resume(QUEUE)
        await until(lambda: len(a.one.got) == 4, "all messages again")


async def test_a_queue_that_is_given_away_is_not_sought_even_if_it_is_fenced() -> None:
    handler = Handler()
    handler.open.clear()
    async with shell(handler=handler, threads=2) as a:
        await a.send(5)
        await until(lambda: len(handler.began) == 2, "calls")
        a.queues.stop_starting(do.StopStarting(QUEUE))
        a.queues.fence(QUEUE)
        with pytest.raises(InvalidInput, match="revoked"):
            await a.one.consumer.seek(QUEUE, 0)
        a.queues.resume(QUEUE)
        await until(lambda: a.held.state is HoldState.DRAINING, "the queue to go on")
        a.queues.drain(do.Drain(QUEUE))
        handler.open.set()
        answers = [events.StartingStopped(QUEUE, 2), events.Drained(QUEUE)]
        await until(lambda: a.reports == answers, "the answers")
        assert handler.began == [0, 1]


async def test_a_seek_ends_a_hole_and_the_offset_passes_it() -> None:
    async with shell() as a:
        await a.send(4)
        await until(lambda: len(a.one.got) == 4, "all messages")
        a.queues.fill_hole(do.FillHole(QUEUE, 4, 8))
        await a.one.consumer.seek(QUEUE, 2)
        assert a.reports == [events.HoleFilled(QUEUE)]
        await a.send(6)
        await until(lambda: stored(a) == 10, "the offset to pass the hole")
        assert sorted(one.queue_offset for one in a.one.got) == [0, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9]
        assert a.reports == [events.HoleFilled(QUEUE)]


async def test_what_is_left_of_a_hole_is_filled_after_a_correction() -> None:
    """What the broker corrects is no wish to skip anything."""
    handler = Handler()
    async with shell(handler=handler) as a:
        await a.send(6)
        await until(lambda: stored(a) == 6, "all messages")
        handler.open.clear()
        handler.began.clear()
        a.queues.fill_hole(do.FillHole(QUEUE, 1, 4))
        await until(lambda: sorted(handler.began) == [1, 2, 3], "the hole")
        assert await a.holdings.restart(a.held, 3, 3.0, skips=False)
        await until(lambda: len(handler.began) == 8, "the rest of it, and of the queue")
        assert Counter(handler.began) == {1: 2, 2: 2, 3: 2, 4: 1, 5: 1}
        assert a.reports == []
        await a.commits.persist_all([QUEUE])
        assert stored(a) == 1
        handler.open.set()
        await until(lambda: a.reports == [events.HoleFilled(QUEUE)], "the hole to be filled")
        await until(lambda: stored(a) == 6, "the offset to pass it")


@pytest.mark.parametrize(("skips", "first"), [(True, 4), (False, 2)])
async def test_a_hole_that_comes_after_a_restart_is_filled_up_to_it(
    skips: bool, first: int
) -> None:
    """As behind a barrier, whose giver dies after the heir was sought or corrected."""
    handler = Handler()
    async with shell(handler=handler) as a:
        await a.send(6)
        await until(lambda: stored(a) == 6, "all messages")
        handler.began.clear()
        a.queues.drop(QUEUE)
        await a.commit(2)
        a.queues.run(do.Run(QUEUE, 5, barrier=5))
        assert await a.holdings.restart(a.held, 4, 3.0, skips=skips)
        a.queues.fill_hole(do.FillHole(QUEUE, 2, 5))
        await until(lambda: a.reports == [events.HoleFilled(QUEUE)], "the answer")
        await until(lambda: stored(a) == 6, "the offset")
        assert sorted(handler.began) == list(range(first, 6))


async def test_a_correction_by_the_broker_restarts_the_queue_and_keeps_it() -> None:
    async with shell() as a:
        await a.send(2)
        await until(lambda: len(a.one.got) == 2, "all messages")
        before = a.held
        await a.one.consumer.seek(QUEUE, 100)
        await until(lambda: a.held.next_offset == 2, "the broker's offset")
        assert a.held is not before
        assert a.held.state is HoldState.OWNED
        await a.send(1)
        await until(lambda: len(a.one.got) == 3, "the next message")


async def test_nothing_of_a_hole_is_committed_by_the_way_of_its_pulls() -> None:
    handler = Handler()
    async with shell(handler=handler) as a:
        await a.send(6)
        await until(lambda: stored(a) == 6, "all messages")
        a.queues.drop(QUEUE)
        await a.commit(2)
        handler.open.clear()
        handler.began.clear()
        a.queues.run(do.Run(QUEUE, 5, barrier=5))
        a.queues.fill_hole(do.FillHole(QUEUE, 2, 5))
        await until(lambda: sorted(handler.began) == [2, 3, 4, 5], "the hole")
        assert await a.commits.read(QUEUE) == 2
        handler.open.set()
        await until(lambda: stored(a) == 6, "the offset")
