"""Offsets of STICKY consumers: confirmed, one at a time, never past a barrier or a hole."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pocketmq.balance.consumer.offsets import OFFSET_UNKNOWN
from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.group.held_queue import HeldQueue, HoldState
from pocketmq.client.options import ClientOptions
from pocketmq.client.questions.offsets import commit, committed
from pocketmq.client.session import Session, ask_session
from pocketmq.client.sessions import lease_session
from pocketmq.errors import BrokerNotFound, InvalidInput, TransportError
from pocketmq.model import BrokerData, GroupConfig, MessageQueue
from pocketmq.protocol import RequestCode, encode_body
from tests.client.group.groups import cluster
from tests.client.servers import Directory, Scripted, route, serving, session_on
from tests.loops import until

QUEUE = MessageQueue("orders", "broker-0", 0)


async def _create_group(session: Session) -> None:
    code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
    body = encode_body(GroupConfig(group_name="billing"))
    await session.brokers.call("broker-0", code, None, body)


class Desk:
    """One queue, its commits, and what the broker has."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.held = HeldQueue(QUEUE, "orders", 0, 0.0)
        self.offsets = ConfirmedOffsets(session, "billing")
        self.offsets.held = {QUEUE: self.held}

    async def stored(self) -> int | None:
        return await ask_session(self.session, committed("billing", QUEUE, zero_if_none=False))

    async def note(self, offset: int) -> int | None:
        """Note an offset, commit what is due, and return what the broker has then."""
        self.offsets.table.update(QUEUE, offset, increase_only=False)
        await self.offsets.persist_all([QUEUE])
        return await self.stored()


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    async with cluster(1) as running:
        lease = await lease_session(ClientOptions(name_servers=running.address))
        try:
            await lease.session.fetch_routes(["orders"])
            await _create_group(lease.session)
            yield Desk(lease.session)
        finally:
            await lease.release()


async def test_what_is_noted_is_stored_and_read() -> None:
    async with desk() as one:
        assert await one.stored() is None
        one.offsets.open(QUEUE, 3, barrier=False)
        assert await one.note(5) == 5
        assert await one.offsets.read(QUEUE) == 5
        assert one.offsets.table.read(QUEUE) == 5, "reading notes nothing"
        one.offsets.close(QUEUE)
        assert await one.note(9) == 5, "nothing is committed after the stay"


async def test_a_start_at_the_first_message_is_stored_without_a_message() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 0, barrier=False)
        assert await one.note(0) == 0
        one.offsets.open(QUEUE, 0, barrier=False)
        assert await one.offsets.recheck(QUEUE) is False, "where it starts is not ahead of it"


async def test_nothing_is_committed_behind_a_barrier_or_a_fence() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=True)
        assert await one.note(5) is None
        one.offsets.lift(QUEUE)
        assert await one.note(5) == 5
        one.held.enter(HoldState.FENCED)
        assert await one.note(6) == 5
        one.held.enter(HoldState.DRAINING)
        assert await one.note(6) == 6


async def test_a_hole_holds_the_offset_back_until_it_is_full() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 10, barrier=True)
        one.offsets.open_hole(QUEUE, 7)
        assert await one.note(15) is None, "the first message of the hole is not done"
        one.offsets.move_hole(QUEUE, 9)
        assert await one.note(15) == 9
        one.offsets.move_hole(QUEUE, None)
        assert await one.note(15) == 15


async def test_the_last_commit_waits_for_the_barrier_and_the_one_in_flight() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=True)
        last = asyncio.create_task(one.offsets.settle(one.held, 8))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not last.done()
        one.offsets.table.update(QUEUE, 5, increase_only=False)
        one.offsets.lift(QUEUE)
        one.offsets.persist(QUEUE)  # begins a commit of 5
        assert await last
        assert await one.stored() == 8


async def test_an_offset_that_went_back_is_committed_again_and_one_ahead_is_told() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=False)
        assert await one.note(6) == 6
        assert not await one.offsets.recheck(QUEUE)
        await ask_session(one.session, commit("billing", QUEUE, 4))
        assert not await one.offsets.recheck(QUEUE)
        await one.offsets.persist_all([QUEUE])
        assert await one.stored() == 6
        await ask_session(one.session, commit("billing", QUEUE, 60))
        assert await one.offsets.recheck(QUEUE)


async def test_a_commit_that_fails_is_not_taken_for_stored() -> None:
    async with desk() as one:
        far = MessageQueue("orders", "nowhere", 0)
        one.offsets.held = {far: HeldQueue(far, "orders", 0, 0.0)}
        one.offsets.open(far, 0, barrier=False)
        assert not await one.offsets.settle(one.offsets.held[far], 5)
        assert not await one.offsets.store(far, 5)
        assert await one.offsets.read(far) == -2


async def test_a_commit_that_was_not_sent_before_a_fence_is_not_sent_after_it() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=False)
        one.offsets.table.update(QUEUE, 5, increase_only=False)
        one.offsets.persist(QUEUE)
        one.held.enter(HoldState.FENCED)
        one.offsets.halt(QUEUE)
        await one.offsets.persist_all([QUEUE])
        assert await one.stored() is None
        one.held.enter(HoldState.OWNED)
        assert await one.note(5) == 5


async def test_the_end_of_a_stay_calls_its_commit_back() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=False)
        one.offsets.table.update(QUEUE, 5, increase_only=False)
        one.offsets.persist(QUEUE)
        one.offsets.close(QUEUE)
        await until(lambda: len(one.offsets._tasks) == 0, "the commit to end")
        assert await one.stored() is None


async def test_the_last_commit_is_not_sent_if_a_fence_came_while_it_waited() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=True)
        last = asyncio.create_task(one.offsets.settle(one.held, 8))
        await asyncio.sleep(0)
        one.held.enter(HoldState.FENCED)
        one.offsets.lift(QUEUE)
        assert await last is None
        assert await one.stored() is None


async def test_to_a_foreign_member_only_a_higher_last_offset_is_stored() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=False)
        one.offsets.to_foreign(QUEUE)
        assert await one.note(5) is None, "nothing is committed by the way"
        await ask_session(one.session, commit("billing", QUEUE, 200))
        assert await one.offsets.settle(one.held, 8)
        assert await one.stored() == 200
        assert await one.offsets.settle(one.held, 300)
        assert await one.stored() == 300


async def test_a_last_offset_that_was_stored_without_an_answer_is_not_stored_again() -> None:
    """The next owner has seen it, and commits."""
    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=False)
        one.held.enter(HoldState.DRAINING)
        call = one.session.brokers.call

        async def unanswered(*asked: Any, **more: Any) -> None:
            await call(*asked, **more)
            raise TransportError("broker-0", "no answer in time")

        vars(one.session.brokers)["call"] = unanswered
        assert await one.offsets.settle(one.held, 8) is False
        del vars(one.session.brokers)["call"]
        assert await one.stored() == 8
        await ask_session(one.session, commit("billing", QUEUE, 200))
        assert await one.offsets.settle(one.held, 8)
        assert await one.stored() == 200


async def test_after_a_failure_what_was_not_stored_is_stored_and_a_lower_offset_too() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=False)
        assert await one.note(7) == 7
        one.held.enter(HoldState.DRAINING)

        async def refused(*_: object, **__: object) -> None:
            raise TransportError("broker-0", "not reached")

        vars(one.session.brokers)["call"] = refused
        assert await one.offsets.settle(one.held, 8) is False
        del vars(one.session.brokers)["call"]
        await one.offsets.commit(one.held, 5)
        assert await one.stored() == 5
        assert await one.offsets.settle(one.held, 8)
        assert await one.stored() == 8


async def test_the_last_offset_for_a_foreign_member_is_not_stored_unread() -> None:
    async with desk() as one:
        far = MessageQueue("orders", "nowhere", 0)
        one.offsets.held = {far: HeldQueue(far, "orders", 0, 0.0)}
        one.offsets.open(far, 0, barrier=False)
        one.offsets.to_foreign(far)
        assert await one.offsets.settle(one.offsets.held[far], 5) is False


async def test_nothing_moves_an_offset_that_the_next_owner_was_told() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=False)
        one.offsets.finish(QUEUE, 5)
        assert await one.note(9) == 5
        with pytest.raises(InvalidInput, match="any more"):
            await one.offsets.commit(one.held, 9)
        assert await one.stored() == 5
        one.offsets.close(QUEUE)
        one.offsets.open(QUEUE, 5, barrier=False)
        assert await one.note(9) == 9, "a later stay is free again"


async def test_an_application_hears_why_its_offset_is_not_stored() -> None:
    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=False)
        await one.offsets.commit(one.held, 7)
        assert await one.stored() == 7
        one.held.enter(HoldState.FENCED)
        with pytest.raises(TransportError, match="lease"):
            await one.offsets.commit(one.held, 8)
        assert await one.stored() == 7
        with pytest.raises(InvalidInput, match="any more"):
            await one.offsets.commit(HeldQueue(QUEUE, "orders", 0, 0.0), 9)
        far = MessageQueue("orders", "nowhere", 0)
        one.offsets.held = {far: HeldQueue(far, "orders", 0, 0.0)}
        one.offsets.open(far, 0, barrier=False)
        with pytest.raises(BrokerNotFound):
            await one.offsets.commit(one.offsets.held[far], 5)


async def test_a_failure_that_nobody_knows_is_an_answer_too() -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("nobody expected this")

    async with desk() as one:
        one.offsets.open(QUEUE, 3, barrier=False)
        vars(one.session.brokers)["call"] = fail
        assert await one.offsets.settle(one.held, 5) is False
        assert await one.offsets.read(QUEUE) == OFFSET_UNKNOWN
        del vars(one.session.brokers)["call"]
        assert await one.offsets.settle(one.held, 5)


async def test_a_slave_is_not_asked_for_offsets() -> None:
    """What it has is from before, and nobody reads what is stored there."""
    slave = Scripted({})
    async with serving(slave) as (_, address):
        names_it = BrokerData(broker_name="broker-0", broker_addrs={1: address})
        directory = Directory({"orders": route(names_it)})
        async with serving(directory) as (_, names), session_on(names) as session:
            await session.fetch_routes(["orders"])
            one = Desk(session)
            one.offsets.open(QUEUE, 0, barrier=False)
            assert await one.offsets.read(QUEUE) == OFFSET_UNKNOWN
            assert await one.offsets.settle(one.held, 5) is False
            assert slave.requests == []
