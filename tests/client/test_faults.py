"""A session while the network around a real cluster breaks."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from pocketmq.embedded.aio import Cluster
from pocketmq.embedded.fault_proxy import FaultProxy, Way
from pocketmq.errors import RequestTimedOut, TransportError
from pocketmq.protocol import RequestCode
from tests.client.members import Consuming
from tests.client.servers import session_on
from tests.loops import until

INFO = RequestCode.GET_BROKER_RUNTIME_INFO


async def test_a_broker_cut_off_in_silence_holds_up_nobody_and_is_back_when_healed() -> None:
    async with (
        Cluster(brokers=2, faults=True) as cluster,
        session_on(cluster.address, request_timeout=1.0) as session,
    ):
        topic = await cluster.create_topic("orders", queues=2)
        session.add_consumer(Consuming("billing", topic))
        await session.fetch_routes([topic])
        assert await session.heartbeats.beat()
        await cluster.partition("broker-0")
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(RequestTimedOut):
            await session.brokers.call("broker-0", INFO, timeout=0.2)
        assert (await session.brokers.call("broker-1", INFO)).code == 0
        assert await session.heartbeats.beat()  # broker-1 took note
        assert loop.time() - began < 5.0
        await cluster.heal("broker-0")
        assert (await session.brokers.call("broker-0", INFO, timeout=10.0)).code == 0


async def test_stopping_while_a_broker_is_silent_takes_little_time_and_leaves_nothing() -> None:
    async with Cluster(faults=True) as cluster:
        topic = await cluster.create_topic("orders", queues=2)
        async with session_on(cluster.address, request_timeout=1.0) as session:
            for group in ("one", "two", "three"):
                session.add_consumer(Consuming(group, topic))
            await session.fetch_routes([topic])
            assert await session.heartbeats.beat()
            await cluster.partition("broker-0")
            session.heartbeats.beat_soon()
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 5.0
        assert len(session.tasks) == 0
        await cluster.heal("broker-0")


async def test_a_garbled_or_torn_route_costs_one_question_only() -> None:
    async with Cluster() as cluster, FaultProxy(cluster.address) as proxy:
        topic = await cluster.create_topic("orders", queues=2)
        async with session_on(proxy.address, request_timeout=1.0) as session:
            spoils: list[Callable[[], None]] = [
                partial(proxy.corrupt, 0, Way.TO_CLIENT),  # the length: no such frame can be
                partial(proxy.cut_after, 20, Way.TO_CLIENT, reset=True),
                partial(proxy.cut_after, 20, Way.TO_CLIENT),
            ]
            for spoil in spoils:
                spoil()
                with pytest.raises(Exception, match="no name server responds") as caught:
                    await session.routes.refresh(topic)
                assert isinstance(caught.value.__cause__, TransportError)
                known = await session.routes.refresh(topic)
                assert len(known.publish_queues) == 2


async def test_bytes_that_trickle_in_are_put_together() -> None:
    async with Cluster() as cluster, FaultProxy(cluster.address) as proxy:
        topic = await cluster.create_topic("orders", queues=2)
        proxy.trickle(7)
        async with session_on(proxy.address) as session:
            assert len((await session.routes.get(topic)).subscribe_queues) == 2


async def test_a_broker_killed_under_calls_fails_each_of_them_and_comes_back() -> None:
    async with Cluster() as cluster, session_on(cluster.address) as session:
        topic = await cluster.create_topic("orders", queues=2)
        await session.fetch_routes([topic])
        address = session.brokers.address("broker-0")
        calls = [asyncio.create_task(session.brokers.call("broker-0", INFO)) for _ in range(50)]
        await asyncio.sleep(0)
        await cluster.kill("broker-0")
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(
            isinstance(each, TransportError) or getattr(each, "code", None) == 0
            for each in outcomes
        )
        await until(lambda: session.calls.connected(address) is None, "the connection to end")
        await cluster.restart("broker-0")
        assert (await session.brokers.call("broker-0", INFO)).code == 0
