"""Closed peers leave nothing behind: no object, task, timer or file, over thousands of connects."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from pocketmq.errors import ConnectionLost
from pocketmq.net import Connection, Dialer
from pocketmq.protocol import Command
from pocketmq.testing.proxy import FaultProxy, Way
from tests.loops import LeapingLoop, leaping, open_files, until
from tests.net.peers import Raw, Recorder, ask, dialling, echo, serving


class Forgetful(Recorder):
    """Keeps no connection itself; knows which ones are still alive."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: weakref.WeakSet[Connection] = weakref.WeakSet()
        self.count = 0

    def counted(self, count: int) -> bool:
        return self.count == count

    def connection_opened(self, connection: Connection) -> None:
        self.count += 1
        self.alive.add(connection)

    def requests_received(self, connection: Connection, requests: list[Command]) -> None:
        if requests[0].body == b"poison":
            raise ValueError("poison")
        if requests[0].body != b"silence":
            echo(connection, requests)

    def connection_closed(self, connection: Connection, cause: Exception | None) -> None:
        pass


@contextmanager
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


ENDS = {
    "whole": ask(b"x").encode(),
    "nothing": b"",
    "mid-frame": ask(b"x" * 100).encode()[:-40],
    "mid-prefix": b"\0\0",
    "garbage": b"\xff" * 20,
    "bad header": b"\x00\x00\x00\x06\x00\x00\x00\x02{{",
    "poison": ask(b"poison").encode(),
    "many": ask(b"x").encode() * 300,
}


@pytest.mark.parametrize("end", ENDS)
async def test_gone_clients_are_freed_without_waiting_for_the_collector(
    end: str, caplog: pytest.LogCaptureFixture
) -> None:
    owner = Forgetful()
    caplog.set_level("CRITICAL", "pocketmq.net")
    async with serving(owner) as (server, address):
        with without_collector():
            for number in range(150):
                peer = Raw(address)
                await peer.send(ENDS[end])
                await until(partial(owner.counted, number + 1), "the connection")
                if number % 2:
                    peer.reset()
                else:
                    peer.socket.close()
            await until(lambda: len(server.connections) == 0, "everyone to leave")
            await until(lambda: len(owner.alive) == 0, "the last to be freed")


async def test_thousands_of_cut_connections_leave_nothing_behind() -> None:
    server_side, client_side = Forgetful(), Forgetful()
    async with (
        serving(server_side) as (server, target),
        FaultProxy(target) as proxy,
        dialling(client_side) as dialer,
    ):
        await dialer.request(proxy.address, ask(b"warm"), 5)
        proxy.cut()
        await until(lambda: not dialer.connections and not server.connections, "the first end")
        files = open_files()
        kinds: set[type] = set()
        for number in range(1000):
            way = Way.TO_SERVER if number % 2 else Way.TO_CLIENT
            proxy.cut_after(number % 700, way, reset=number % 3 == 0)
            kinds |= await outcomes(dialer, proxy.address)
            proxy.cut(reset=True)
            await until(lambda: not dialer.connections, "the end")
        proxy.pass_through()
        await until(lambda: not server.connections and not proxy.links, "everyone to leave")
        await until(lambda: open_files() <= files, "all files to be closed")
        await until(lambda: not client_side.alive and not server_side.alive, "all to be freed")
        assert kinds == {Command, ConnectionLost}
        assert client_side.count == 1001
        assert len(asyncio.all_tasks()) == 1  # this one
        assert dialer._open == {}
        assert dialer._dialling == {}


async def outcomes(dialer: Dialer, address: str) -> set[type]:
    tries = [dialer.request(address, ask(b"x" * 200), 5) for _ in range(2)]
    return {type(outcome) for outcome in await asyncio.gather(*tries, return_exceptions=True)}


@leaping
async def test_no_timer_outlives_its_connection() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, LeapingLoop)
    owner = Forgetful()
    async with serving(owner) as (server, address), dialling(Forgetful()) as dialer:
        for _ in range(20):
            connection = await dialer.connect(address)
            task = asyncio.create_task(connection.request(ask(b"silence"), 10))
            await asyncio.sleep(0)
            connection.abort()
            await asyncio.gather(task, return_exceptions=True)
        await until(lambda: not server.connections and not dialer.connections, "the end")
        assert [timer for timer in loop._scheduled if not timer.cancelled()] == []  # type: ignore[attr-defined]


@leaping
async def test_a_thousand_requests_share_one_timer() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, LeapingLoop)
    async with serving(Forgetful()) as (_, address), dialling(Forgetful()) as dialer:
        connection = await dialer.connect(address)
        await connection.request(ask(), 30)
        before = len(loop._scheduled)  # type: ignore[attr-defined]
        waiting = [
            asyncio.create_task(connection.request(ask(b"silence"), 30 + number))
            for number in range(1000)
        ]
        await until(lambda: len(connection._requests) == 1000, "the requests")
        assert len(loop._scheduled) <= before + 1  # type: ignore[attr-defined]
        # One more at most: the server's look at frames that arrived in pieces.
        connection.abort()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert len(outcomes) == 1000
