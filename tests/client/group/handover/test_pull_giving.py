"""What a pull consumer's application may do to a queue that is given away, or fenced."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pocketmq.balance.handover import events
from pocketmq.balance.handover import instructions as do
from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.group.handover.queues import HandoverQueues
from pocketmq.client.group.held_queue import HoldState
from pocketmq.client.pull import PullConsumer
from pocketmq.client.pull.cache import PullQueue
from pocketmq.client.questions.offsets import commit
from pocketmq.client.session import ask_session
from pocketmq.errors import InvalidInput, TransportError
from pocketmq.model import MessageQueue
from tests.client.group.groups import cluster, send
from tests.client.group.handover.test_pull import sticky_reader
from tests.loops import until

QUEUE = MessageQueue("orders", "broker-0", 0)


class Desk:
    """A reader of ten messages in one queue, instructed by the test."""

    def __init__(self, consumer: PullConsumer) -> None:
        self.consumer = consumer
        member = consumer._life.member
        assert member is not None
        assert member.sticky is not None
        self.member, self.sticky = member, member.sticky
        made = member.sticky._queues
        self.reports: list[events.HandoverEvent] = []
        self.queues: HandoverQueues[PullQueue] = HandoverQueues(
            member.parts, made._holdings, made._handled, self.reports.append
        )
        self.commits: ConfirmedOffsets = made.commits

    @property
    def held(self) -> PullQueue:
        return self.member.parts.queues.pulled[QUEUE]

    async def stored(self) -> int:
        return await self.commits.read(QUEUE)

    async def give(self) -> None:
        """Give the queue away, up to where its next owner is notified."""
        self.queues.stop_starting(do.StopStarting(QUEUE))
        await until(lambda: bool(self.reports), "the answer")


@asynccontextmanager
async def desk(**settings: Any) -> AsyncIterator[Desk]:
    settings = {"auto_commit": False, "pull_batch": 4, "commit_interval": 0.01, **settings}
    async with cluster(1, 1) as running:
        await send(running.address, 10)
        async with sticky_reader(running.address, "a", **settings) as consumer:
            await until(lambda: bool(consumer.assignment().get("orders")), "the queue")
            made = Desk(consumer)
            yield made
            for event in made.reports:  # so that the member can leave
                made.sticky._post(event)


async def test_nothing_is_committed_once_the_next_owner_was_told_where_it_starts() -> None:
    async with desk() as a:
        assert len(await a.consumer.poll(10.0)) == 4
        await a.give()
        assert a.reports == [events.StartingStopped(QUEUE, 0)]
        with pytest.raises(InvalidInput, match="any more"):
            await a.consumer.commit({QUEUE: 4})
        with pytest.raises(InvalidInput, match="any more"):
            await a.member.positions._store(QUEUE, 4)
        await a.consumer.commit()  # of what is left, which is nothing
        await a.commits.persist_all([QUEUE])
        assert await a.stored() == 0


async def test_a_commit_that_waits_while_the_queue_is_dropped_is_not_sent() -> None:
    async with desk() as a:
        await a.consumer.poll(10.0)
        a.commits.table.update(QUEUE, 2, increase_only=False)
        a.commits.persist(QUEUE)  # the one that it waits for
        waiting = asyncio.create_task(a.consumer.commit({QUEUE: 4}))
        await asyncio.sleep(0)
        a.queues.drop(QUEUE)
        await ask_session(a.member.session, commit("audit", QUEUE, 9))  # the next owner's
        with pytest.raises(InvalidInput):
            await waiting
        assert await a.stored() == 9
        a.reports.append(events.Overtaken(QUEUE))  # the machine does not know of the drop


async def test_what_the_listener_commits_is_where_the_next_owner_starts() -> None:
    async with desk() as a:

        @a.consumer.on_revoked
        async def revoked(_: Sequence[MessageQueue]) -> None:
            await a.consumer.commit()

        await a.consumer.poll(10.0)
        await a.give()
        assert a.reports == [events.StartingStopped(QUEUE, 4)]
        assert await a.stored() == 4


async def test_an_offset_of_a_fenced_queue_is_stored_after_the_fence() -> None:
    async with desk() as a:
        await a.consumer.poll(10.0)
        a.queues.fence(QUEUE)
        with pytest.raises(TransportError, match="lease"):
            await a.consumer.commit()
        assert await a.stored() == 0
        a.queues.resume(QUEUE)
        await until(lambda: a.held.state is HoldState.OWNED, "the queue to go on")
        await until(lambda: a.commits._lines[QUEUE].stored == 4, "the offset")


async def test_a_queue_that_is_given_away_is_not_sought_or_reset() -> None:
    async with desk() as a:
        await a.consumer.poll(10.0)
        await a.consumer.commit()
        await a.give()
        a.queues.fence(QUEUE)
        with pytest.raises(InvalidInput, match="being handed over"):
            await a.consumer.seek(QUEUE, 8)
        await a.member.reset_offsets("orders", {QUEUE: 8})
        assert a.held.position.consume_offset == 4
        a.queues.resume(QUEUE)
        a.queues.drain(do.Drain(QUEUE))
        await until(lambda: len(a.reports) == 2, "the end")
        assert await a.stored() == 4


async def test_a_seek_that_asks_while_the_queue_is_given_away_comes_too_late() -> None:
    async with desk() as a:
        await a.consumer.poll(10.0)
        seeking = asyncio.create_task(a.consumer.seek(QUEUE, 8))
        await asyncio.sleep(0)
        a.queues.stop_starting(do.StopStarting(QUEUE))
        with pytest.raises(InvalidInput, match="being handed over"):
            await seeking
        await until(lambda: a.reports == [events.StartingStopped(QUEUE, 0)], "the answer")


async def test_a_fenced_queue_can_be_sought_and_goes_on_there() -> None:
    async with desk() as a:
        await a.consumer.poll(10.0)
        a.queues.fence(QUEUE)
        await a.consumer.seek(QUEUE, 8)
        assert await a.consumer.poll(0.0) == []
        a.queues.resume(QUEUE)
        assert [each.queue_offset for each in await a.consumer.poll(10.0)] == [8, 9]


async def test_a_consumer_that_is_closed_waits_for_no_further_poll() -> None:
    async with desk(auto_commit=True) as a:
        await a.consumer.poll(10.0)
        a.queues.stop_starting(do.StopStarting(QUEUE))
        for _ in range(5):
            await asyncio.sleep(0)
        assert a.reports == []
        closing = asyncio.create_task(a.consumer.close())
        await until(lambda: a.reports == [events.StartingStopped(QUEUE, 4)], "the answer", 30)
        a.sticky._post(a.reports[0])
        await closing
