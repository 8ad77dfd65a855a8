"""Starting and ending, whoever calls and whenever: for the rule, and for every kind of client."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from pocketmq import aio
from pocketmq.client.lifetime import Lifetime
from pocketmq.embedded.aio import Cluster
from pocketmq.embedded.fault_proxy import FaultProxy
from pocketmq.errors import ClientClosed, NameServersUnreachable
from tests.loops import until


class Story:
    """A client whose start waits for `gate`."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.gate = asyncio.Event()
        self.failure: Exception | None = None

    async def start(self) -> None:
        self.told.append("start")
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.told.append("undone")
            raise
        if self.failure is not None:
            raise self.failure
        self.told.append("started")

    async def end(self) -> None:
        self.told.append("end")
        await asyncio.sleep(0.01)
        self.told.append("ended")


async def _begun(story: Story, life: Lifetime) -> "asyncio.Task[None]":
    task = asyncio.create_task(life.start(story.start))
    await until(lambda: story.told == ["start"], "the start")
    return task


async def test_those_who_start_at_once_share_one_start() -> None:
    life, story = Lifetime("me"), Story()
    story.gate.set()
    await asyncio.gather(*(life.start(story.start) for _ in range(3)))
    await life.start(story.start)
    assert story.told == ["start", "started"]
    assert life.started


async def test_a_start_that_fails_may_be_tried_again() -> None:
    life, story = Lifetime("me"), Story()
    story.gate.set()
    story.failure = ValueError("no")
    with pytest.raises(ValueError, match="no"):
        await life.start(story.start)
    await life.end(story.end)  # nothing to end
    story.failure = None
    await life.start(story.start)
    assert story.told == ["start", "start", "started"]


async def test_the_end_gives_up_a_start_and_says_so() -> None:
    life, story = Lifetime("me"), Story()
    starting = await _begun(story, life)
    waiting = asyncio.create_task(life.start(story.start))
    await life.end(story.end)
    assert story.told == ["start", "undone", "end", "ended"]
    for task in (starting, waiting):
        with pytest.raises(ClientClosed, match="me"):
            await task
    with pytest.raises(ClientClosed):
        await life.start(story.start)


async def test_a_starter_who_is_cancelled_leaves_the_start_to_the_next() -> None:
    life, story = Lifetime("me"), Story()
    starting = await _begun(story, life)
    waiting = asyncio.create_task(life.start(story.start))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    story.gate.set()
    await waiting
    assert story.told == ["start", "undone", "start", "started"]


async def test_an_end_goes_on_without_its_caller_and_comes_once() -> None:
    life, story = Lifetime("me"), Story()
    story.gate.set()
    await life.start(story.start)
    ending = asyncio.create_task(life.end(story.end))
    await until(lambda: "end" in story.told, "the end")
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    await asyncio.gather(life.end(story.end), life.end(story.end))
    assert story.told == ["start", "started", "end", "ended"]


# Every kind of client

Make = Callable[[str], Any]


def _push(address: str) -> Any:
    consumer = aio.PushConsumer(address, group="life", instance_name="life")
    consumer.subscribe("orders", "*", lambda _: None)
    return consumer


CLIENTS: dict[str, Make] = {
    "producer": lambda address: aio.Producer(address, group="life", instance_name="life"),
    "push": _push,
    "pull": lambda address: aio.PullConsumer(address, group="life", instance_name="life").subscribe(
        "orders"
    ),
    "pop": lambda address: aio.PopConsumer(address, group="life", instance_name="life").subscribe(
        "orders"
    ),
}
clients = pytest.mark.parametrize("make", CLIENTS.values(), ids=CLIENTS)


@clients
async def test_a_client_closed_while_it_starts_is_closed(make: Make) -> None:
    async with Cluster() as cluster:
        await cluster.create_topic("orders", 2)
        for turns in range(40):  # closed at every step of the way
            client = make(cluster.address)
            starting = asyncio.create_task(client.start())
            for _ in range(turns):
                await asyncio.sleep(0)
            await client.close()
            with suppress(ClientClosed):  # unless closed before it began, or after
                await starting
            await client.close()
            with pytest.raises(ClientClosed):
                await client.start()
            await client.close()
            await until(lambda: len(asyncio.all_tasks()) < 30, "the client's tasks to end")


@clients
async def test_a_client_started_twice_at_once_is_one_client(make: Make) -> None:
    async with Cluster() as cluster:
        await cluster.create_topic("orders", 2)
        client = make(cluster.address)
        await asyncio.gather(client.start(), client.start())
        await client.close()


@clients
async def test_a_close_that_is_cancelled_goes_on(make: Make) -> None:
    async with Cluster() as cluster:
        await cluster.create_topic("orders", 2)
        client = make(cluster.address)
        await client.start()
        holder: Any = getattr(client, "_life", client)  # producers hold their lease themselves
        session = holder._lease.session
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await until(lambda: not session.running, "the client to be gone")


@clients
async def test_a_client_that_could_not_start_may_try_again(make: Make) -> None:
    async with Cluster() as cluster, FaultProxy(cluster.address) as proxy:
        await cluster.create_topic("orders", 2)
        client = make(proxy.address)
        await proxy.refuse()
        for _ in range(2):
            with pytest.raises(NameServersUnreachable):
                await client.start()
        proxy.accept()
        await client.start()
        await client.close()
