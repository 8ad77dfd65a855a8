"""Brokers that vanish and come back, pulls that die, handlers that take for ever."""

import asyncio
import threading
from pathlib import Path

import pytest

from pocketmq.balance.allocation import Average
from pocketmq.client.filters import by_sql
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.consumer import PushConsumer
from pocketmq.errors import GroupTaken, NameServersUnreachable, ServerError
from pocketmq.model import Message, MessageQueue
from pocketmq.protocol import ReceivedMessage, RequestCode
from tests.client.group.groups import BRISK, Member, cluster, member, queues_of, send, shared
from tests.client.push.test_steering import member_of
from tests.loops import leap, leaping, until
from tests.ports import free_port

AVG = Average()


async def test_a_broker_that_was_lost_is_consumed_again_when_it_is_back(tmp_path: Path) -> None:
    async with (
        cluster(2, 2, data=tmp_path) as running,
        member(running.address, pull_retry=0.05, route_interval=0.1) as one,
    ):
        await shared([one], queues_of(2, 2), AVG)
        await running.kill("broker-1")
        async with Producer(running.address, group="senders") as producer:
            await producer.send(
                Message("orders", b"meanwhile"), queue=MessageQueue("orders", "broker-0", 0)
            )
        await until(lambda: one.bodies == [b"meanwhile"], "the broker that is left")
        await running.restart("broker-1")
        await shared([one], queues_of(2, 2), AVG)
        async with Producer(running.address, group="senders") as producer:
            await producer.send(
                Message("orders", b"back"), queue=MessageQueue("orders", "broker-1", 1)
            )
        await until(lambda: one.bodies == [b"meanwhile", b"back"], "the broker that is back")


async def test_one_broker_that_falls_silent_does_not_stop_the_other() -> None:
    async with (
        cluster(2, 2, faults=True) as running,
        member(running.address, request_timeout=1.0) as one,
    ):
        await shared([one], queues_of(2, 2), AVG)
        await running.partition("broker-1")
        member_of(one).request_rebalance()
        async with Producer(running.address, group="senders") as producer:
            await producer.send(
                Message("orders", b"on"), queue=MessageQueue("orders", "broker-0", 0)
            )
        await until(lambda: one.bodies == [b"on"], "the broker that is left")
        assert len(one.queues()) == 4
        await running.heal("broker-1")


@leaping
async def test_a_queue_whose_pull_died_is_given_up_and_taken_again() -> None:
    async with cluster(1, 1) as running, member(running.address) as one:
        queue = queues_of(1, 1)[0]
        await shared([one], [queue], AVG)
        joined = member_of(one)
        dead = joined.parts.queues.pulled[queue]
        joined.pulling.end(dead)  # as if a fault in its loop had ended it
        await send(running.address, 1)
        await leap(121.0)
        await until(lambda: len(one.got) == 1, "the message")
        assert joined.parts.queues.pulled[queue] is not dead
        assert dead.dropped
        taken = next(e for e in reversed(one.consumer.history) if e.assigned and e.revoked)
        assert taken.revoked == (queue,)


async def test_dropped_queues_stop_pulling_at_once_and_lose_their_cache() -> None:
    gate = asyncio.Event()

    async def handle(message: ReceivedMessage) -> None:
        await gate.wait()

    async with cluster(1, 2) as running:
        one = Member(running.address, "a")
        one.consumer.subscribe("orders", "*", handle)
        async with one.consumer:
            await shared([one], queues_of(1, 2), AVG)
            await send(running.address, 20)
            helds = dict(member_of(one).parts.queues.pulled)
            await until(
                lambda: all(helds[queue].process.count == 10 for queue in queues_of(1, 2)), "caches"
            )
            async with member(running.address, "b") as other:
                await shared([one, other], queues_of(1, 2), AVG)
                (lost,) = other.queues()
                assert helds[lost].dropped
                assert helds[lost].process.count == 0
                task = helds[lost].task
                assert task is not None
                await until(task.done, "the pull to end")
                await until(lambda: len(other.got) == 10, "its messages elsewhere")
            gate.set()


async def test_heartbeats_go_on_while_handlers_block() -> None:
    release = threading.Event()
    beats = 0

    def count(code: int, fields: dict[str, str], body: bytes) -> None:
        nonlocal beats
        beats += code == RequestCode.HEART_BEAT

    blocked: list[ReceivedMessage] = []

    def block(message: ReceivedMessage) -> None:
        blocked.append(message)
        release.wait(20)

    async with cluster(1, 2) as running:
        one = Member(running.address, "a", heartbeat_interval=0.05, threads=2)
        one.consumer.subscribe("orders", "*", block)
        try:
            async with one.consumer:
                await send(running.address, 4)
                await until(lambda: len(blocked) == 2, "busy threads")
                one.consumer.session.calls.hooks += (count,)
                await until(lambda: beats >= 5, "heartbeats")
                assert len(blocked) == 2
                release.set()
        finally:
            release.set()


async def test_a_consumer_without_name_server_does_not_start_and_leaves_nothing() -> None:
    consumer = PushConsumer("127.0.0.1:1", group="billing")
    consumer.subscribe("orders", "*", print)
    with pytest.raises(NameServersUnreachable):
        await consumer.start()


async def test_a_consumer_may_start_before_its_name_server() -> None:
    port = free_port()
    one = Member(
        f"127.0.0.1:{port}", "a", start_wait=None, route_interval=0.05, heartbeat_interval=0.05
    )
    one.consumer.subscribe("orders", "*", one.handle)
    async with one.consumer, cluster(1, 2, port=port) as running:
        await shared([one], queues_of(1, 2), AVG)
        await send(running.address, 2)
        await until(lambda: len(one.got) == 2, "messages")


async def test_a_group_has_one_consumer_in_a_client() -> None:
    async with cluster() as running, member(running.address, "a") as one:
        twin = Member(running.address, "a")
        twin.consumer.subscribe("orders", "*", twin.handle)
        with pytest.raises(GroupTaken):
            await twin.consumer.start()
        await shared([one], queues_of(1, 4), AVG)


async def test_an_expression_that_a_broker_refuses_fails_the_start() -> None:
    async with cluster(config={"enablePropertyFilter": False}) as running:
        consumer = PushConsumer(running.address, group="billing", profile=BRISK)
        consumer.subscribe("orders", by_sql("price > 10"), print)
        with pytest.raises(ServerError):
            await consumer.start()


async def test_a_start_that_is_cancelled_leaves_nothing() -> None:
    async with cluster(faults=True) as running:
        await running.partition("broker-0")
        one = Member(running.address, "a")
        one.consumer.subscribe("orders", "*", one.handle)
        task = asyncio.create_task(one.consumer.start())
        await until(lambda: one.consumer._life.member is not None, "the start to be under way")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await running.heal("broker-0")


async def test_closing_twice_and_at_the_same_time_is_harmless() -> None:
    async with cluster() as running, member(running.address) as one:
        await shared([one], queues_of(1, 4), AVG)
        await asyncio.gather(one.consumer.close(), one.consumer.close())
        await one.consumer.close()
        assert not one.consumer.running
