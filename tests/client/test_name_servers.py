"""One name server while it answers, the next when it does not."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

import pytest

from pocketmq.client.calls import ServerCalls
from pocketmq.client.name_servers import NameServerCalls, name_server_addresses
from pocketmq.embedded.fault_proxy import FaultProxy
from pocketmq.errors import InvalidInput, NameServersUnreachable, RequestNotSupported
from pocketmq.net import Dialer
from tests.client.servers import Directory, Scripted
from tests.loops import until
from tests.net.peers import Recorder, serving

ROUTE = 105
NO_ROUTE = frozenset({17})


class Servers:
    """Name servers behind proxies that can fail, and the client's side of them."""

    def __init__(self, directories: dict[str, Directory], proxies: dict[str, FaultProxy]) -> None:
        self.directories = directories
        self.proxies = proxies
        self.dialer = Dialer(Recorder())
        self.client = NameServerCalls(
            tuple(proxies), ServerCalls(self.dialer, (), lambda: None), Random(7)
        )

    async def ask(self, within: float = 10.0) -> str:
        """Ask something, give the server that answered."""
        before = {name: len(each.requests) for name, each in self.directories.items()}
        await self.client.ask(ROUTE, {"topic": "t"}, timeout=within, accept=NO_ROUTE)
        [answered] = [
            name for name, each in self.directories.items() if len(each.requests) > before[name]
        ]
        return answered


@asynccontextmanager
async def servers(count: int) -> AsyncIterator[Servers]:
    async with AsyncExitStack() as stack:
        directories, proxies = {}, {}
        for _ in range(count):
            directory = Directory()
            _, address = await stack.enter_async_context(serving(directory))
            proxy = await stack.enter_async_context(FaultProxy(address))
            directories[proxy.address] = directory
            proxies[proxy.address] = proxy
        made = Servers(directories, proxies)
        try:
            yield made
        finally:
            await made.dialer.close(0.2)


async def test_the_chosen_server_is_kept_while_it_answers() -> None:
    async with servers(3) as three:
        first = await three.ask()
        assert [await three.ask() for _ in range(5)] == [first] * 5
        assert three.client.chosen == first


async def test_a_server_that_is_gone_is_left_for_good() -> None:
    """Also when it comes back: clients do not run to and fro."""
    async with servers(3) as three:
        first = await three.ask()
        await three.proxies[first].refuse()
        three.proxies[first].cut()
        await until(lambda: three.dialer.known(first) is None, "the connection to end")
        second = await three.ask()
        assert second != first
        three.proxies[first].accept()
        assert [await three.ask() for _ in range(3)] == [second] * 3


async def test_a_lost_connection_moves_on_even_if_the_server_is_there_again() -> None:
    """As in Java; the load of a restarted server comes back with its next failure elsewhere."""
    async with servers(2) as two:
        first = await two.ask()
        two.proxies[first].cut(reset=True)
        await until(lambda: two.dialer.known(first) is None, "the connection to end")
        assert await two.ask() != first


async def test_a_silent_server_costs_its_share_of_the_time_only() -> None:
    async with servers(2) as two:
        first = await two.ask()
        two.proxies[first].swallow()
        assert await two.ask(within=1.0) != first


async def test_when_none_answers_all_are_named() -> None:
    async with servers(2) as two:
        for proxy in two.proxies.values():
            await proxy.refuse()
        with pytest.raises(NameServersUnreachable) as caught:
            await two.ask()
        assert caught.value.addresses == tuple(two.proxies)
        assert caught.value.__cause__ is not None
        for proxy in two.proxies.values():
            proxy.accept()
        assert await two.ask() in two.proxies


async def test_a_refusal_is_an_answer_and_no_reason_to_ask_another() -> None:
    server = Scripted({})
    async with serving(server) as (_, address):
        dialer = Dialer(Recorder())
        client = NameServerCalls((address,), ServerCalls(dialer, (), lambda: None), Random(7))
        with pytest.raises(RequestNotSupported, match="GET_ROUTEINFO_BY_TOPIC"):
            await client.ask(ROUTE, timeout=5.0)
        await dialer.close(0.2)


def test_clients_spread_over_the_servers() -> None:
    addresses = ("a:1", "b:1", "c:1")
    calls = ServerCalls.__new__(ServerCalls)
    chosen = {NameServerCalls(addresses, calls, Random(seed)).chosen for seed in range(50)}
    assert chosen == set(addresses)


def test_addresses_come_from_the_options_or_the_environment() -> None:
    environment = {"NAMESRV_ADDR": "c:3"}
    assert name_server_addresses("a:1; b:2;a:1", environment) == ("a:1", "b:2")
    assert name_server_addresses("", environment) == ("c:3",)
    with pytest.raises(NameServersUnreachable, match="no name server address is set"):
        name_server_addresses("", {})
    with pytest.raises(InvalidInput):
        name_server_addresses("nonsense", {})
