"""Offsets at brokers: stored by and by, at revocation and at the end, and read at the start."""

import asyncio

import pytest

from pocketmq.balance.allocation import Average
from pocketmq.balance.consumer.offsets import NO_OFFSET, OFFSET_UNKNOWN
from pocketmq.client.group.offsets import RemoteOffsets
from pocketmq.errors import ResponseCode
from pocketmq.model import ConsumeFromWhere, MessageQueue
from pocketmq.protocol import Command, ReceivedMessage, RequestCode
from pocketmq.protocol.requests.offsets import (
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
)
from tests.client.group.groups import Member, cluster, member, members, queues_of, send, shared
from tests.client.servers import Directory, Scripted, broker, route, session_on
from tests.loops import leap, leaping, until
from tests.net.peers import serving

AVG = Average()


async def stored(address: str, queues: int = 4, group: str = "billing") -> list[int]:
    """What the broker has stored for each queue of `orders`; -1 where it has nothing."""
    async with session_on(address) as session:
        await session.fetch_routes(["orders"])
        offsets = []
        for queue in range(queues):
            answer = await session.brokers.call(
                "broker-0",
                RequestCode.QUERY_CONSUMER_OFFSET,
                QueryConsumerOffsetRequest(consumer_group=group, topic="orders", queue_id=queue),
                accept=frozenset({0, 22}),
            )
            found = answer.code == 0
            offsets.append(answer.header(QueryConsumerOffsetResponse).offset if found else -1)
        return offsets


async def test_a_group_goes_on_where_it_stopped() -> None:
    async with cluster() as running:
        await send(running.address, 40)
        async with member(running.address) as one:
            await until(lambda: len(one.got) == 40, "the first messages")
        assert await stored(running.address) == [10] * 4
        later = await send(running.address, 8)
        async with member(running.address, "b") as other:
            await until(lambda: len(other.got) >= 8, "the rest")
        assert sorted(other.bodies) == sorted(later)
        assert await stored(running.address) == [12] * 4


async def test_offsets_are_stored_now_and_then_and_when_asked() -> None:
    async with cluster() as running:
        async with member(running.address, persist_first_after=0.05, persist_interval=0.05) as one:
            await send(running.address, 12)
            await until(lambda: len(one.got) == 12, "all messages")
            async with asyncio.timeout(10):
                while await stored(running.address) != [3] * 4:
                    continue  # each question takes a while
        async with member(running.address, "b") as other:
            await shared([other], queues_of(1, 4), AVG)
            await send(running.address, 4)
            await until(lambda: len(other.got) == 4, "all messages")
            await other.consumer.commit()
            assert await stored(running.address) == [4] * 4


async def test_a_queue_that_moves_to_another_member_brings_nothing_twice() -> None:
    async with cluster() as running, member(running.address) as a:
        await send(running.address, 40)
        await until(lambda: len(a.got) == 40, "all messages")
        # A newcomer reads what is stored when it takes a queue, be it before the other lets go.
        await a.consumer.commit()
        while await stored(running.address, 4) != [10] * 4:
            await a.consumer.commit()
        async with member(running.address, "b") as b:
            await shared([a, b], queues_of(1, 4), AVG)
            more = await send(running.address, 40)
            await until(lambda: len(a.got) + len(b.got) >= 80, "the rest")
            assert len(a.got) + len(b.got) == 80
            assert {message.queue_offset for message in b.got} == set(range(10, 20))
            assert sorted(a.bodies[40:] + b.bodies) == sorted(more)


async def test_what_a_handler_has_not_finished_comes_again() -> None:
    """The offset stops before the first unfinished message, whatever is done behind it."""
    async with cluster(1, 1) as running:
        await send(running.address, 10)
        stuck = asyncio.Event()

        async def handle(message: ReceivedMessage) -> None:
            if message.queue_offset == 4:
                await stuck.wait()
            one.got.append(message)

        one = Member(running.address, "a", stop_wait=0.0)
        one.consumer.subscribe("orders", "*", handle)
        async with one.consumer:
            await until(lambda: len(one.got) == 9, "all but one")
        assert await stored(running.address, 1) == [4]
        async with member(running.address, "b") as other:
            await until(lambda: len(other.got) == 6, "the rest again")
        assert [message.queue_offset for message in other.got] == [4, 5, 6, 7, 8, 9]


async def test_a_new_group_begins_where_it_wants() -> None:
    """On a queue whose first messages are gone from memory no broker answers 0 for the last."""
    async with cluster(1, 1) as running:
        await send(running.address, 5)
        first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        at = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP
        async with member(running.address, "a", group="first", consume_from=first) as a:
            await until(lambda: len(a.got) == 5, "everything")
        async with member(running.address, "b", group="at", consume_from=at, start_at=1.0) as b:
            await until(lambda: len(b.got) == 5, "everything since 1970")


async def test_offsets_are_told_to_brokers_that_ask() -> None:
    async with cluster(1, 1) as running, member(running.address) as one:
        await send(running.address, 3)
        await until(lambda: len(one.got) == 3, "all messages")
        joined = one.consumer._life.member
        assert joined is not None
        queue = MessageQueue("orders", "broker-0", 0)
        await until(lambda: joined.noted_offset(queue) == 3, "the offset to be noted")
        assert await joined.offsets_reached("orders") == {queue: 3}


async def test_orderly_members_hand_queues_over_with_their_locks() -> None:
    queues = queues_of(1, 4)
    async with cluster() as running, members(running.address, "a", "b", orderly=True) as (a, b):
        await shared([a, b], queues, AVG)
        await send(running.address, 40)
        await until(lambda: len(a.got) + len(b.got) == 40, "all messages")
        async with member(running.address, "c", orderly=True) as c:
            await shared([a, b, c], queues, AVG)
            await send(running.address, 40)
            await until(lambda: len(a.got) + len(b.got) + len(c.got) == 80, "the rest")
        await shared([a, b], queues, AVG)
        for one in (a, b, c):
            for queue in {(m.broker_name, m.queue_id) for m in one.got}:
                offsets = [m.queue_offset for m in one.got if (m.broker_name, m.queue_id) == queue]
                assert offsets == sorted(offsets)


async def test_the_last_offsets_are_answered_before_the_end_and_silence_is_not_waited_for() -> None:
    """A member that starts at once must not be told an offset from before."""

    def say(request: Command) -> Command | None:
        return request.reply(0) if request.ext["queueId"] == "0" else None

    code = RequestCode.UPDATE_CONSUMER_OFFSET
    busy = Scripted({code: say})
    async with serving(busy) as (_, place):
        there = Directory({"orders": route(broker("broker-0", place))})
        async with serving(there) as (_, names), session_on(names) as session:
            await session.fetch_routes(["orders"])
            offsets = RemoteOffsets(session, "billing", session.options.profile)
            queues = [MessageQueue("orders", "broker-0", number) for number in range(2)]
            for queue in queues:
                offsets.table.update(queue, 7, increase_only=False)
            await offsets.persist_all(queues)
            await until(lambda: len(busy.asked_for(code)) == 2, "offsets sent one-way")
            async with asyncio.timeout(10):
                await offsets.persist_last(queues)
    assert [request.is_oneway for request in busy.asked_for(code)] == [True, True, False, False]
    assert {request.ext["commitOffset"] for request in busy.asked_for(code)} == {"7"}


async def test_the_first_of_many_refusals_to_tell_an_offset_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A consumer that may not read waits for ever; a group without an offset is no failure."""
    code = RequestCode.QUERY_CONSUMER_OFFSET
    answers = iter([16, 16, ResponseCode.QUERY_NOT_FOUND, 16])
    refusing = Scripted({code: lambda request: request.reply(next(answers), "no permission")})
    async with serving(refusing) as (_, place):
        there = Directory({"orders": route(broker("broker-0", place))})
        async with serving(there) as (_, names), session_on(names) as session:
            await session.fetch_routes(["orders"])
            offsets = RemoteOffsets(session, "billing", session.options.profile)
            queue = MessageQueue("orders", "broker-0", 0)
            found = [await offsets.read(queue) for _ in range(4)]
    assert found == [OFFSET_UNKNOWN, OFFSET_UNKNOWN, NO_OFFSET, OFFSET_UNKNOWN]
    warned = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warned) == 2, "the first of a row, and the first after an answer"
    for each in warned:
        assert "reading offset failed" in each
        assert "no permission" in each


@pytest.mark.parametrize("orderly", [False, True])
@leaping
async def test_offsets_are_stored_soon_after_the_first_messages_and_every_few_seconds(
    orderly: bool,
) -> None:
    """Who ends without a farewell has stored nearly everything, also if it ends early."""
    async with cluster() as running, member(running.address, orderly=orderly) as one:
        await shared([one], queues_of(1, 4), AVG)
        await leap(1)
        await send(running.address, 12)
        await until(lambda: len(one.got) == 12, "all messages")
        await leap(1.1)
        await stored_are(running.address, [3] * 4)
        await send(running.address, 4)
        await until(lambda: len(one.got) == 16, "all messages")
        await leap(5.1)
        await stored_are(running.address, [4] * 4)


async def stored_are(address: str, offsets: list[int]) -> None:
    """Wait until the broker has read what was sent to it one-way."""
    async with asyncio.timeout(5):
        while await stored(address) != offsets:
            continue
