"""Pausing, resuming, seeking; caches that are full hold pulls back."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import msgspec
import pytest

from pocketmq.balance.allocation import Average
from pocketmq.balance.consumer.limits import PullLimits
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.member import PushMember
from pocketmq.errors import ClientClosed, InvalidInput
from pocketmq.model import Message, MessageQueue
from pocketmq.protocol import ReceivedMessage
from tests.client.group.groups import BRISK, Member, cluster, member, queues_of, send, shared
from tests.loops import until

AVG = Average()
FIRST, SECOND = queues_of(1, 2)


def member_of(one: Member) -> PushMember:
    joined = one.consumer._life.member
    assert joined is not None
    return joined


async def test_a_paused_queue_is_not_pulled_until_it_is_resumed() -> None:
    async with cluster(1, 2) as running, member(running.address) as one:
        one.consumer.pause(FIRST)  # before its first pull, which the broker might hold
        await shared([one], [FIRST, SECOND], AVG)
        async with Producer(running.address, group="senders") as producer:
            await producer.send(Message("orders", b"1"), queue=FIRST)
            await producer.send(Message("orders", b"2"), queue=SECOND)
        await until(lambda: one.bodies == [b"2"], "the other queue")
        held = member_of(one).parts.queues.pulled[FIRST]
        await until(lambda: held.woken is not None, "the pause to take hold")
        assert held.next_offset == 0
        one.consumer.resume(FIRST)
        await until(lambda: one.bodies == [b"2", b"1"], "the paused queue")


async def test_a_topic_stays_paused_for_queues_that_come_later() -> None:
    async with (
        cluster(1, 2, "orders", "refunds") as running,
        member(running.address, topics=("refunds",)) as one,
    ):
        one.consumer.pause("orders")
        one.consumer.subscribe("orders", "*", one.handle)
        await shared([one], [FIRST, SECOND], AVG)
        await send(running.address, 4)
        await send(running.address, 2, "refunds")
        await until(lambda: len(one.got) == 2, "the topic that is not paused")
        assert {message.topic for message in one.got} == {"refunds"}
        one.consumer.resume()
        await until(lambda: len(one.got) == 6, "everything")


async def test_seeking_back_brings_messages_again() -> None:
    async with cluster(1, 1) as running, member(running.address) as one:
        await send(running.address, 10)
        await until(lambda: len(one.got) == 10, "everything once")
        await one.consumer.seek(FIRST, 7)
        await until(lambda: len(one.got) == 13, "the last three again")
        assert [message.queue_offset for message in one.got[10:]] == [7, 8, 9]
        await until(lambda: member_of(one).noted_offset(FIRST) == 10, "the offset")


async def test_seeking_on_passes_messages() -> None:
    async with cluster(1, 1) as running, member(running.address) as one:
        one.consumer.pause()
        await shared([one], [FIRST], AVG)
        await send(running.address, 10)
        await one.consumer.seek(FIRST, 8)
        one.consumer.resume()
        await until(lambda: len(one.got) == 2, "the last two")
        assert [message.queue_offset for message in one.got] == [8, 9]


async def test_seeking_behind_the_end_ends_where_the_broker_says() -> None:
    async with cluster(1, 1) as running, member(running.address) as one:
        await send(running.address, 3)
        await until(lambda: len(one.got) == 3, "everything once")
        await one.consumer.seek(FIRST, 100)
        await until(lambda: member_of(one).noted_offset(FIRST) == 3, "the broker's correction")
        await send(running.address, 1)
        await until(lambda: len(one.got) == 4, "the next message")


async def test_seeking_keeps_an_orderly_consumers_lock() -> None:
    async with cluster(1, 1) as running, member(running.address, orderly=True) as one:
        await send(running.address, 5)
        await until(lambda: len(one.got) == 5, "everything once")
        await one.consumer.seek(FIRST, 0)
        await until(lambda: len(one.got) == 10, "everything again")
        assert [message.queue_offset for message in one.got] == [*range(5), *range(5)]


async def test_what_cannot_be_steered_is_refused() -> None:
    async with cluster(1, 1) as running:
        one = Member(running.address, "a")
        one.consumer.subscribe("orders", "*", one.handle)
        with pytest.raises(ClientClosed):
            one.consumer.pause()
        async with one.consumer as consumer:
            await shared([one], [FIRST], AVG)
            with pytest.raises(InvalidInput, match="not assigned"):
                await consumer.seek(SECOND, 0)
            with pytest.raises(InvalidInput, match="an offset must be 0 or more"):
                await consumer.seek(FIRST, -1)
        with pytest.raises(ClientClosed):
            consumer.assignment()


async def send_at_once(address: str, count: int) -> None:
    """Send messages to the first queue, in batches."""
    async with Producer(address, group="senders") as producer:
        for number in range(0, count, 200):
            some = range(number, min(number + 200, count))
            await producer.send_batch([Message("orders", b"%d" % n) for n in some], queue=FIRST)


@pytest.mark.parametrize(
    ("limits", "body"),
    [
        (PullLimits(count=10), b"x"),
        (PullLimits(size_mib=1), Random(1).randbytes(300_000)),
        (PullLimits(topic_count=20), b"x"),
    ],
    ids=["count", "size", "topic"],
)
async def test_a_full_cache_holds_pulls_back_until_there_is_room(
    limits: PullLimits, body: bytes
) -> None:
    """Java stops pulling above the limit, so one batch more than it is cached at most."""
    async with cluster(1, 2) as running:
        queues = [MessageQueue("orders", "broker-0", each) for each in (0, 1)]
        async with Producer(running.address, group="senders") as producer:
            for number in range(40):
                await producer.send(Message("orders", body), queue=queues[number % 2])
        gate = asyncio.Event()
        got: list[ReceivedMessage] = []

        async def handle(message: ReceivedMessage) -> None:
            await gate.wait()
            got.append(message)

        one = Member(running.address, "a", limits=limits, pull_batch=4)
        one.consumer.subscribe("orders", "*", handle)
        async with one.consumer:
            held = member_of(one).parts.queues.pulled
            await until(
                lambda: len(held) > 1 and all(held[queue].woken for queue in queues), "full caches"
            )
            for queue in queues:
                process = held[queue].process
                assert process.count <= 14
                assert process.size < (2 << 20) + 4 * 300_000
            gate.set()
            await until(lambda: len(got) == 40, "everything")


class Gate:
    """A handler that waits until it may go on."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.got: list[int] = []

    async def handle(self, message: ReceivedMessage) -> None:
        await self.open.wait()
        self.got.append(message.queue_offset)


async def full(member: Member) -> HeldQueue:
    """Wait until the cache of the first queue is full."""
    held = member_of(member).parts.queues.pulled
    await until(lambda: FIRST in held and held[FIRST].woken is not None, "a full cache")
    return held[FIRST]


async def test_a_backlog_is_pulled_in_larger_portions_up_to_the_limit() -> None:
    """Java's 32 first; then 256, 256, 256, the 200 there is room for, and Java's last 32 again."""
    async with cluster(1, 1) as running:
        await send_at_once(running.address, 2000)
        gate = Gate()
        one = Member(running.address, "a")
        one.consumer.subscribe("orders", "*", gate.handle)
        async with one.consumer:
            held = await full(one)
            assert held.next_offset == 32 + 3 * 256 + 200 + 32
            gate.open.set()
            await until(lambda: len(gate.got) == 2000, "everything")
            assert sorted(gate.got) == list(range(2000))


async def test_who_pulls_more_than_the_limit_is_woken_as_soon_as_half_of_it_is_free() -> None:
    async with cluster(1, 1) as running:
        await send_at_once(running.address, 128)
        gate = Gate()
        one = Member(running.address, "a", limits=PullLimits(count=10), pull_batch=32)
        one.consumer.subscribe("orders", "*", gate.handle)
        async with one.consumer:
            held = await full(one)
            assert (held.process.count, held.wake_below) == (32, 5)
            gate.open.set()
            await until(lambda: len(gate.got) == 128, "everything")


async def test_a_message_that_stays_behind_holds_pulls_back() -> None:
    async with cluster(1, 1) as running:
        await send(running.address, 60)
        gate = asyncio.Event()
        got: list[int] = []

        async def handle(message: ReceivedMessage) -> None:
            if message.queue_offset == 0 or message.queue_offset >= 20:
                await gate.wait()
            got.append(message.queue_offset)

        one = Member(running.address, "a", limits=PullLimits(span=20), pull_batch=4)
        one.consumer.subscribe("orders", "*", handle)
        async with one.consumer:
            await until(lambda: len(got) == 19, "all between the first and the last")
            held = member_of(one).parts.queues.pulled[FIRST]
            await until(lambda: held.woken is not None, "the pull to wait")
            assert held.next_offset == 24
            gate.set()
            await until(lambda: len(got) == 60, "everything")


async def test_a_queue_sought_under_a_slow_handler_is_not_given_away_before_it_ends() -> None:
    """The new stay has no handler call in flight, but the one before it has."""
    started: list[tuple[str, int]] = []
    gate = asyncio.Event()
    async with cluster(1, 1) as running:
        await send(running.address, 3)

        def handler(name: str) -> Callable[[ReceivedMessage], Awaitable[None]]:
            async def handle(message: ReceivedMessage) -> None:
                started.append((name, message.queue_offset))
                if len(started) == 1:
                    await gate.wait()

            return handle

        often = msgspec.structs.replace(BRISK, rebalance_interval=0.3)
        b = Member(running.address, "b", orderly=True, profile=often)
        a = Member(running.address, "a", orderly=True, profile=often)
        for one in (a, b):
            one.consumer.subscribe("orders", "*", handler(one.name))
        async with b.consumer:
            await until(lambda: started == [("b", 0)], "the first call")
            (queue,) = b.queues()
            joined = member_of(b)
            held = joined.parts.queues.pulled[queue]
            assert await joined.holdings.restart(held, 0, 0.0)
            assert joined.parts.queues.pulled[queue] is not held
            assert not await joined.parts.queues.pulled[queue].until_idle(0.01)
            async with a.consumer:
                await asyncio.sleep(0.5)  # nothing may happen while `a` rebalances
                assert started == [("b", 0)]
                gate.set()
                await until(lambda: [o for _, o in started[1:]] == [0, 1, 2], "all of them")
