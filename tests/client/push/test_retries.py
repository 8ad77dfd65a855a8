"""Messages that handlers do not finish: again later, dead letters, overdue ones; on a cluster."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pocketmq.client.push.handlers import Consumed, RetryLater
from pocketmq.embedded.aio import Cluster
from pocketmq.protocol import ReceivedMessage
from tests.client.group.groups import Member, cluster, member, send
from tests.loops import until

AT_ONCE = {"messageDelayLevel": " ".join(["0s"] * 18)}
SOON = {"route_interval": 0.05}
"""A fresh group's retry topic appears with its first heartbeat, and is found with the next poll."""
DEAD = "%DLQ%billing"


def plain(do: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return do


def coroutine(do: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def handler(given: Any) -> Any:
        await asyncio.sleep(0)
        return do(given)

    return handler


kinds = pytest.mark.parametrize("kind", [plain, coroutine])


@asynccontextmanager
async def consuming(
    running: Cluster, handler: Callable[[Any], Any], **settings: Any
) -> AsyncIterator[Member]:
    """A member with a handler of its own."""
    one = Member(running.address, "a", **{**SOON, **settings})
    one.consumer.subscribe("orders", "*", handler)
    async with one.consumer:
        yield one


@kinds
async def test_a_failing_message_comes_again_until_it_is_a_dead_letter(kind: Any) -> None:
    seen: list[tuple[str, bytes, int]] = []

    def handler(message: ReceivedMessage) -> Consumed | None:
        seen.append((message.topic, message.body, message.reconsume_times))
        if message.body == b"0":
            raise ValueError("never")
        return Consumed.RETRY if message.body == b"1" and message.reconsume_times < 2 else None

    async with (
        cluster(config=AT_ONCE) as running,
        consuming(running, kind(handler), max_reconsume_times=3),
    ):
        await send(running.address, 3)
        async with member(running.address, "dead", group="readers", topics=(DEAD,), **SOON) as dead:
            await until(lambda: dead.got, "the dead letter", 20)
            await until(lambda: len(seen) >= 8, "the second message's last try")
            assert [(one.body, one.get_property("RETRY_TOPIC")) for one in dead.got] == [
                (b"0", "orders")
            ]
    assert sorted(seen) == [
        *[("orders", b"0", count) for count in range(4)],
        *[("orders", b"1", count) for count in range(3)],
        ("orders", b"2", 0),
    ]


async def test_a_handlers_own_level_decides_when_it_comes_again() -> None:
    levels = {"messageDelayLevel": "1s 1h 1h 1h 1h 1h"}
    seen: list[float] = []

    async def handler(message: ReceivedMessage) -> RetryLater | None:
        seen.append(time.monotonic())  # brokers count real time, in which the loop may stand still
        return RetryLater(1) if message.reconsume_times == 0 else None

    async with cluster(config=levels) as running, consuming(running, handler):
        await send(running.address, 1)
        await until(lambda: len(seen) == 2, "the second try")
    assert seen[1] - seen[0] > 0.9


async def test_a_message_may_be_given_up_at_once() -> None:
    async with (
        cluster(config=AT_ONCE) as running,
        consuming(running, lambda message: RetryLater(-1)),
        member(running.address, "dead", group="readers", topics=(DEAD,), **SOON) as dead,
    ):
        bodies = await send(running.address, 5)
        await until(lambda: len(dead.got) == 5, "the dead letters")
        assert sorted(dead.bodies) == bodies


async def test_an_overdue_message_is_handled_again_elsewhere() -> None:
    """The stuck call keeps its thread, but not the message, and its late answer harms nothing."""
    release = threading.Event()
    seen: list[int] = []

    def handler(message: ReceivedMessage) -> None:
        seen.append(message.reconsume_times)
        if message.reconsume_times == 0:
            release.wait(30)

    async with (
        cluster(config=AT_ONCE) as running,
        consuming(running, handler, consume_timeout=0.3, stop_wait=5.0) as one,
    ):
        await send(running.address, 1)
        await until(lambda: seen == [0, 1], "the second try")
        release.set()
        await one.consumer.close()
    assert seen == [0, 1]


@kinds
async def test_an_orderly_message_that_never_works_is_set_aside_as_a_dead_letter(kind: Any) -> None:
    seen: Counter[bytes] = Counter()

    def handler(message: ReceivedMessage) -> Consumed | None:
        seen[message.body] += 1
        return Consumed.RETRY if message.body == b"1" else None

    async with (
        cluster(1, 1, config=AT_ONCE) as running,
        consuming(running, kind(handler), orderly=True, max_reconsume_times=2, suspend_queue=0.02),
        member(running.address, "dead", group="readers", topics=(DEAD,), **SOON) as dead,
    ):
        await send(running.address, 3)
        await until(lambda: dead.got, "the dead letter", 20)
        await until(lambda: len(seen) == 3, "those behind it")
        assert dead.bodies == [b"1"]
    assert seen == {b"0": 1, b"1": 3, b"2": 1}


async def test_a_hanging_handler_costs_its_thread_and_nothing_else() -> None:
    """Heartbeats go on, other queues go on, and the offset stays before what is not done."""
    release = threading.Event()
    done: list[bytes] = []

    def handler(message: ReceivedMessage) -> None:
        if message.body == b"0":
            release.wait(30)
        done.append(message.body)

    async with (
        cluster() as running,
        consuming(running, handler, heartbeat_interval=0.05, threads=2, stop_wait=5.0) as one,
    ):
        bodies = await send(running.address, 40)
        await until(lambda: len(done) == 39, "all but one")
        assert len(one.consumer.assignment()["orders"]) == 4
        release.set()
        await until(lambda: sorted(done) == sorted(bodies), "the last")
