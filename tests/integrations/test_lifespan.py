"""Clients start and end with a web application."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

import httpx
import uvicorn
from fastapi import FastAPI, Request

from pocketmq import Cluster, aio
from pocketmq.errors import ClientClosed, InvalidInput
from pocketmq.integrations.lifespan import lifespan
from tests.loops import until


class Shop:
    """An application that sends orders, and waits for those it is sent."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.producers: list[aio.Producer] = []
        self._address, self._topic = cluster.address, topic
        self._bodies: asyncio.Queue[bytes] = asyncio.Queue()
        self.app = FastAPI(lifespan=lifespan(orders=self._producer, bills=self._consumer))
        self.app.post("/orders/{number}")(self._order)

    def _producer(self) -> aio.Producer:
        self.producers.append(aio.Producer(self._address, group="shop", send_timeout=30.0))
        return self.producers[-1]

    def _consumer(self) -> aio.PushConsumer:
        self._bodies = asyncio.Queue()
        consumer = aio.PushConsumer(self._address, group=self._topic, consume_from="first")
        consumer.subscribe(self._topic, "*", self._bill)
        return consumer

    async def _bill(self, message: aio.ReceivedMessage) -> None:
        self._bodies.put_nowait(message.body)

    async def _order(self, number: int, request: Request) -> str:
        assert request.state.bills.running
        await request.state.orders.send(aio.Message(self._topic, b"%d" % number))
        return (await self._bodies.get()).decode()


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """Run an application on a real server."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="on", log_level="critical"))
    running = asyncio.create_task(server.serve())
    await until(lambda: server.started or running.done(), "the server")
    if running.done():
        raise RuntimeError("the application did not start")
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        # Its own patience is 5 s; an order is answered when a member has joined and got its message.
        here = f"http://127.0.0.1:{port}"
        async with httpx.AsyncClient(base_url=here, timeout=60.0) as client:
            yield client
    finally:
        server.should_exit = True
        await running


async def test_each_start_has_clients_of_its_own(rocketmq: Cluster, rocketmq_topic: str) -> None:
    shop = Shop(rocketmq, rocketmq_topic)
    for number in (17, 18):
        async with serving(shop.app) as client:
            assert (await client.post(f"/orders/{number}")).json() == str(number)
    assert len(shop.producers) == 2
    for producer in shop.producers:
        with pytest.raises(ClientClosed):
            await producer.send(aio.Message(rocketmq_topic, b"late"))


async def test_a_client_that_cannot_start_ends_those_before_it(rocketmq: Cluster) -> None:
    started: list[aio.Producer] = []

    def good() -> aio.Producer:
        started.append(aio.Producer(rocketmq.address, group="shop"))
        return started[-1]

    def bad() -> Any:
        return aio.Producer(rocketmq.address, group="no group")

    running = lifespan(good=good, bad=bad)(None)
    with pytest.raises(InvalidInput):
        await running.__aenter__()
    with pytest.raises(ClientClosed):
        await started[0].send(aio.Message("T", b"late"))
