"""Connections to others: shared, made anew, and clear about why there is none."""

import asyncio
import re
import socket
from functools import partial

import pytest

from pocketmq.errors import ConnectFailed, ConnectionLost, InvalidInput, RequestTimedOut
from pocketmq.net import Limits
from pocketmq.net.address import socket_name
from pocketmq.testing.proxy import FaultProxy
from tests.loops import leap, leaping, until
from tests.net.peers import LOOPBACK, Recorder, ask, dialling, echo, serving
from tests.own_time import own_time
from tests.ports import free_port


def gone(owner: Recorder, count: int) -> bool:
    return len(owner.closed) == count


async def test_callers_of_one_address_share_one_connection() -> None:
    owner = Recorder(echo)
    async with serving(owner) as (_, address), dialling(Recorder()) as dialer:
        assert dialer.known(address) is None
        connections = await asyncio.gather(*[dialer.connect(address) for _ in range(50)])
        assert len({id(connection) for connection in connections}) == 1
        assert await dialer.connect(address) is connections[0] is dialer.known(address)
        await dialer.request(address, ask(), 5)
        assert len(owner.opened) == 1


async def test_each_address_has_a_connection_of_its_own() -> None:
    async with (
        serving(Recorder()) as (_, one),
        serving(Recorder()) as (_, other),
        dialling(Recorder()) as dialer,
    ):
        assert await dialer.connect(one) is not await dialer.connect(other)


async def test_nobody_listening_is_said_and_does_not_poison_later_tries() -> None:
    owner = Recorder(echo)
    async with (
        serving(owner) as (_, target),
        FaultProxy(target) as proxy,
        dialling(Recorder()) as dialer,
    ):
        await proxy.refuse()
        tries = [dialer.request(proxy.address, ask(), 5) for _ in range(3)]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == [
            f"{proxy.address}: connection refused; no server listens there"
        ] * 3
        assert {type(outcome) for outcome in outcomes} == {ConnectFailed}
        assert len({id(outcome) for outcome in outcomes}) == 3
        assert all(isinstance(outcome.__cause__, OSError) for outcome in outcomes)  # type: ignore[union-attr]
        assert dialer.known(proxy.address) is None
        proxy.accept()
        assert (await dialer.request(proxy.address, ask(b"now"), 5)).body == b"now"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("does-not-exist.invalid:9876", "the host name does not resolve: "),
        ("a" * 64 + ".example:9876", "the host name is invalid"),
        ("a..b:9876", "the host name is invalid"),
    ],
)
async def test_a_name_that_leads_nowhere_is_said(address: str, reason: str) -> None:
    async with dialling(Recorder()) as dialer:
        with pytest.raises(ConnectFailed) as caught:
            await dialer.connect(address, 5)
        assert caught.value.reason.startswith(reason)


async def test_what_is_no_address_is_the_callers_mistake() -> None:
    async with dialling(Recorder()) as dialer:
        with pytest.raises(InvalidInput):
            await dialer.connect("localhost")


async def test_a_host_that_does_not_answer_at_all_is_given_up_in_time() -> None:
    loop = asyncio.get_running_loop()
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind((LOOPBACK, 0))
        full.listen(0)  # the kernel drops what comes after this queue is full
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        address = socket_name(full.getsockname())
        async with dialling(Recorder(), Limits(connect=0.1)) as dialer:
            started, own = loop.time(), own_time()
            with pytest.raises(ConnectFailed, match=r"no connection within 0\.1 s"):
                await dialer.connect(address)
            with pytest.raises(ConnectFailed, match=r"no connection within 0\.05 s"):
                await dialer.request(address, ask(), 0.05)
            assert loop.time() - started > 0.14
            assert own_time() - own < 2
            await until(lambda: not dialer._dialling, "the dial to end")


async def test_a_peer_that_accepts_but_never_speaks_times_the_request_out() -> None:
    async with (
        serving(Recorder(echo)) as (_, target),
        FaultProxy(target) as proxy,
        dialling(Recorder(), Limits(silence=60)) as dialer,
    ):
        await proxy.stop_accepting()
        await dialer.connect(proxy.address)  # which may take longer than the request has
        with pytest.raises(RequestTimedOut):
            await dialer.request(proxy.address, ask(), 0.05)
        proxy.accept()
        assert (await dialer.request(proxy.address, ask(b"now"), 5)).body == b"now"
        assert proxy.accepted == 1


@leaping
async def test_a_connection_silent_for_a_whole_request_is_given_up() -> None:
    """A half-open connection would swallow every later request, too."""
    client = Recorder()
    async with (
        serving(Recorder(echo)) as (_, target),
        FaultProxy(target) as proxy,
        dialling(client) as dialer,
    ):
        await dialer.request(proxy.address, ask(), 5)
        proxy.swallow()
        task = asyncio.create_task(dialer.request(proxy.address, ask(), 3))
        connection = await dialer.connect(proxy.address)
        await until(lambda: len(connection._requests) == 1, "the request")
        await leap(3.1)
        with pytest.raises(RequestTimedOut):
            await task
        proxy.pass_through()
        assert (await dialer.request(proxy.address, ask(b"anew"), 5)).body == b"anew"
        assert proxy.accepted == 2
        await until(lambda: client.closed, "the end of the first")
        told = re.search(r"silent for (\d+\.\d) s", str(client.causes[0]))
        assert told is not None
        assert float(told[1]) >= 3.1  # and what the machine took meanwhile


@leaping
async def test_a_slow_answer_does_not_cost_a_connection_that_is_alive() -> None:
    owner = Recorder()
    async with serving(owner) as (_, address), dialling(Recorder()) as dialer:
        connection = await dialer.connect(address)
        task = asyncio.create_task(dialer.request(address, ask(), 100))
        await until(lambda: owner.requests, "the request")
        await leap(60)
        heard = connection.last_read
        owner.opened[0].send_oneway(ask(code=40))
        await until(lambda: connection.last_read > heard, "the notice")
        await leap(41)
        with pytest.raises(RequestTimedOut):
            await task
        assert dialer.known(address) is connection


async def test_a_lost_connection_is_made_anew() -> None:
    client = Recorder()
    async with (
        serving(Recorder(echo)) as (_, target),
        FaultProxy(target) as proxy,
        dialling(client) as dialer,
    ):
        for count, reset in enumerate((True, False, True), start=1):
            assert (await dialer.request(proxy.address, ask(b"x"), 5)).body == b"x"
            proxy.cut(reset=reset)
            await until(partial(gone, client, count), "the end")
            assert dialer.known(proxy.address) is None
        assert (await dialer.request(proxy.address, ask(b"y"), 5)).body == b"y"
        assert proxy.accepted == len(client.opened) == 4


async def test_a_connection_being_closed_is_not_given_out_again() -> None:
    async with serving(Recorder(echo)) as (_, address), dialling(Recorder()) as dialer:
        first = await dialer.connect(address)
        first.close()
        second = await dialer.connect(address)
        assert second is not first
        await until(lambda: first._transport is None, "the end of the first")
        assert dialer.known(address) is second


async def test_a_caller_that_gives_up_does_not_take_the_connection_from_the_others() -> None:
    async with serving(Recorder(echo)) as (_, address), dialling(Recorder()) as dialer:
        first = asyncio.create_task(dialer.connect(address))
        second = asyncio.create_task(dialer.connect(address))
        await asyncio.sleep(0)
        first.cancel()
        assert not (await second).closed
        assert first.cancelled()


async def test_a_failed_dial_nobody_waits_for_any_more_is_silent() -> None:
    async with dialling(Recorder()) as dialer:
        task = asyncio.create_task(dialer.connect(f"{LOOPBACK}:{free_port()}"))
        await asyncio.sleep(0)
        task.cancel()
        await until(lambda: not dialer._dialling, "the dial to end")


async def test_a_closed_dialer_refuses_and_leaves_nothing() -> None:
    client = Recorder()
    async with serving(Recorder()) as (_, address):
        async with dialling(client) as dialer:
            connection = await dialer.connect(address)
            waiting = asyncio.create_task(connection.request(ask(), 10))
            await asyncio.sleep(0)
        with pytest.raises(ConnectionLost):
            await waiting
        assert [connection for connection, _ in client.closed] == [connection]
        with pytest.raises(ConnectFailed, match="the client is closed"):
            await dialer.connect(address)


async def test_closing_while_dialling_ends_the_dial() -> None:
    async with serving(Recorder()) as (_, address), dialling(Recorder()) as dialer:
        waiting = asyncio.create_task(dialer.connect(address))
        await asyncio.sleep(0)
        await dialer.close()
        with pytest.raises(ConnectFailed, match="the client was closed meanwhile"):
            await waiting
        assert len(dialer.connections) == 0
