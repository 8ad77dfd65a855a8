"""Calls to brokers by name: addresses, ports, refusals, deadlines."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from pocketmq import errors
from pocketmq.client.brokers import any_broker_of, vip_address
from pocketmq.client.options import Credentials
from pocketmq.client.session import Session
from pocketmq.embedded.fault_proxy import FaultProxy
from pocketmq.net import Server
from pocketmq.protocol import Command
from pocketmq.protocol.signature import Signed, check_signature
from tests.client.servers import Directory, Scripted, broker, route, serving, session_on
from tests.loops import until


def say(code: int, remark: str | None = None) -> Scripted:
    return Scripted({1: lambda request: request.reply(code, remark, body=request.body)})


@asynccontextmanager
async def knowing(*addresses: str, **options: object) -> AsyncIterator[Session]:
    """A session that knows broker `a` at these addresses."""
    directory = Directory({"orders": route(broker("a", *addresses))})
    async with serving(directory) as (_, names), session_on(names, **options) as session:
        await session.fetch_routes(["orders"])
        yield session


async def test_the_answer_comes_back() -> None:
    server = say(0)
    async with serving(server) as (_, address), knowing(address) as session:
        answer = await session.brokers.call("a", 1, {"topic": "orders"}, b"hello")
        assert answer.body == b"hello"
        assert server.requests[0].ext == {"topic": "orders"}


async def test_a_refusal_is_the_error_that_stands_for_its_code() -> None:
    async with serving(say(17, "gone")) as (_, address), knowing(address) as session:
        with pytest.raises(errors.TopicNotFound) as caught:
            await session.brokers.call("a", 1)
        assert (caught.value.address, caught.value.remark) == (address, "gone")
        answer = await session.brokers.call("a", 1, accept=frozenset({0, 17}))
        assert answer.code == 17


async def test_an_unknown_broker_is_told_before_anything_is_sent() -> None:
    server = say(0)
    async with serving(server) as (_, address), knowing(address) as session:
        with pytest.raises(errors.BrokerNotFound, match="'b'"):
            await session.brokers.call("b", 1)
        assert server.opened == []


async def test_a_slave_stands_in_for_its_master_unless_that_is_wanted() -> None:
    directory = Directory()
    async with (
        serving(say(0)) as (_, address),
        serving(directory) as (_, names),
        session_on(names) as session,
    ):
        slave = broker("a")
        slave.broker_addrs[1] = address
        directory.routes["orders"] = route(slave)
        await session.fetch_routes(["orders"])
        assert (await session.brokers.call("a", 1)).code == 0
        with pytest.raises(errors.BrokerNotFound):
            await session.brokers.call("a", 1, master_only=True)
        assert await any_broker_of(session.routes, "orders", Random(1)) == address


async def test_a_call_without_an_answer_ends_at_its_deadline() -> None:
    server = Scripted({1: lambda _: None})
    async with serving(server) as (_, address), knowing(address) as session:
        with pytest.raises(errors.RequestTimedOut, match=r"within 0\.05 s"):
            await session.brokers.call("a", 1, timeout=0.05)


async def test_a_connection_cut_in_mid_call_is_told_with_its_flags() -> None:
    server = Scripted({1: lambda _: None})
    async with (
        serving(server) as (_, behind),
        FaultProxy(behind) as proxy,
        knowing(proxy.address) as session,
    ):
        call = asyncio.create_task(session.brokers.call("a", 1, timeout=10.0))
        await until(lambda: server.asked_for(1), "the request")
        proxy.cut(reset=True)
        with pytest.raises(errors.ConnectionLost) as caught:
            await call
        assert caught.value.refresh_route
        assert caught.value.outcome_unknown


async def test_what_needs_no_answer_is_only_sent() -> None:
    server = say(0)
    async with serving(server) as (_, address), knowing(address) as session:
        await session.brokers.tell("a", 1, {"k": "v"}, b"x")
        await until(lambda: server.asked_for(1), "the request")
        [request] = server.asked_for(1)
        assert (request.is_oneway, request.ext, request.body) == (True, {"k": "v"}, b"x")


async def test_requests_are_signed_if_there_is_a_user() -> None:
    server = say(2, "later")
    user = Credentials(access_key="RocketMQ", secret_key="12345678")
    async with serving(server) as (_, address), knowing(address, credentials=user) as session:
        with pytest.raises(errors.SystemBusy):
            await session.brokers.call("a", 1, {"topic": "TopicA"})
        (request,) = server.requests
        assert (request.ext["AccessKey"], request.ext["topic"]) == ("RocketMQ", "TopicA")
        signed = check_signature(b"12345678", request.code, request.ext, request.body)
        assert signed is Signed.BOUND


async def test_the_second_port_takes_all_but_pulls_and_heartbeats() -> None:
    main, second = Scripted({11: _done, 1: _done}), Scripted({11: _done, 1: _done})
    async with serving(main) as (_, address):
        server = Server(second)
        host, port = address.rsplit(":", 1)
        try:
            await server.listen(host, int(port) - 2)
        except errors.ListenFailed:  # taken by somebody else
            pytest.skip("the port two below a free one is taken")
        try:
            async with knowing(address, vip_channel=True) as session:
                await session.brokers.call("a", 1)
                await session.brokers.call("a", 11)
        finally:
            await server.close(grace=0.2)
    assert [request.code for request in second.requests] == [1]
    assert [request.code for request in main.requests] == [11]


def _done(request: Command) -> Command:
    return request.reply(0)


def test_the_second_port_is_two_below_the_first() -> None:
    assert vip_address("10.0.0.1:10911") == "10.0.0.1:10909"
    assert vip_address("[::1]:10911") == "[::1]:10909"
    assert vip_address("h:1") == "h:1"


async def test_a_topic_without_brokers_has_none_to_ask() -> None:
    directory = Directory({"empty": route()})
    async with serving(directory) as (_, names), session_on(names) as session:
        with pytest.raises(errors.RouteNotFound):
            await session.any_broker_of("empty")
