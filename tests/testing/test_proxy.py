"""The fault proxy: each way of breaking the network does what it says, and only that."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from typing import cast

import pytest

from pocketmq.net import parse_address
from pocketmq.testing.proxy import FaultProxy, Way
from tests.loops import until
from tests.net.peers import Raw
from tests.ports import free_port


class Peer:
    """A listening server's end: what arrived, and a way to answer."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.pieces: list[int] = []
        self.ended: list[Exception | None] = []
        self.transports: list[asyncio.Transport] = []

    def protocol(self) -> asyncio.Protocol:
        peer = self

        class Connection(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self.transport = cast("asyncio.Transport", transport)
                peer.transports.append(self.transport)

            def data_received(self, data: bytes) -> None:
                peer.received += data
                peer.pieces.append(len(data))
                if data == b"ping":
                    self.transport.write(b"pong")

            def connection_lost(self, exc: Exception | None) -> None:
                peer.ended.append(exc)

        return Connection()


@contextlib.asynccontextmanager
async def proxied() -> AsyncIterator[tuple[FaultProxy, Peer]]:
    peer = Peer()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(peer.protocol, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with FaultProxy(f"127.0.0.1:{port}") as proxy:
            yield proxy, peer
    finally:
        server.close()
        for transport in peer.transports:
            transport.abort()


async def test_it_passes_bytes_and_ends_on() -> None:
    async with proxied() as (proxy, peer):
        async with Raw(proxy.address) as client:
            await client.send(b"ping")
            assert await client.read() == b"pong"
            assert (proxy.links, proxy.accepted) == (1, 1)
            client.socket.shutdown(socket.SHUT_WR)
            assert await client.read() == b""
        await until(lambda: proxy.links == 0, "the end")
        assert peer.ended == [None]


async def test_large_amounts_arrive_whole() -> None:
    data = bytes(range(256)) * 20_000
    async with proxied() as (proxy, peer), Raw(proxy.address) as client:
        await client.send(data)
        await until(lambda: len(peer.received) == len(data), "all bytes")
        assert peer.received == data


async def test_a_delay_lets_bytes_wait() -> None:
    loop = asyncio.get_running_loop()
    async with proxied() as (proxy, _), Raw(proxy.address) as client:
        proxy.delay(0.05)
        started = loop.time()
        await client.send(b"ping")
        assert await client.read() == b"pong"
        assert loop.time() - started >= 0.1


async def test_a_trickle_tears_what_was_sent_at_once() -> None:
    async with proxied() as (proxy, peer), Raw(proxy.address) as client:
        proxy.trickle(3, pause=0.01, way=Way.TO_SERVER)
        await client.send(b"abcdefgh")
        await until(lambda: len(peer.received) == 8, "all bytes")
        assert peer.pieces == [3, 3, 2]


async def test_swallowed_bytes_are_gone_and_nobody_notices() -> None:
    async with proxied() as (proxy, peer), Raw(proxy.address) as client:
        await client.send(b"ping")
        assert await client.read() == b"pong"
        proxy.swallow()
        await client.send(b"x" * 1_000_000)
        peer.transports[0].write(b"unheard")
        client.socket.shutdown(socket.SHUT_WR)
        async with Raw(proxy.address) as newcomer:
            await newcomer.send(b"ping")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await newcomer.read()
        assert peer.received == b"ping"
        assert peer.ended == []


async def test_a_connection_that_lost_bytes_does_not_come_back_to_life() -> None:
    async with proxied() as (proxy, _), Raw(proxy.address) as lossy, Raw(proxy.address) as whole:
        await whole.send(b"ping")
        assert await whole.read() == b"pong"
        proxy.swallow(Way.TO_SERVER)
        await lossy.send(b"lost")
        await until(lambda: any(link.lossy for link in proxy._links.values()), "the loss")
        proxy.pass_through()
        with pytest.raises(ConnectionResetError):
            await lossy.read()
        await whole.send(b"ping")
        assert await whole.read() == b"pong"


@pytest.mark.parametrize("way", [Way.TO_SERVER, Way.TO_CLIENT])
async def test_a_partition_of_one_direction_holds_bytes_until_it_heals(way: Way) -> None:
    async with proxied() as (proxy, peer), Raw(proxy.address) as client:
        await client.send(b"ping")
        assert await client.read() == b"pong"
        proxy.hold(way)
        await client.send(b"ping")
        if way is Way.TO_CLIENT:
            await until(lambda: len(peer.received) == 8, "the way that is open")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.read()
        if way is Way.TO_SERVER:
            assert len(peer.received) == 4
        proxy.pass_through()
        assert await client.read() == b"pong"


async def test_one_byte_is_corrupted_once() -> None:
    async with proxied() as (proxy, peer), Raw(proxy.address) as client:
        await client.send(b"abc")
        await until(lambda: len(peer.received) == 3, "the first bytes")
        proxy.corrupt(4, Way.TO_SERVER)
        await client.send(b"\0\0\0")
        await until(lambda: len(peer.received) == 6, "the next bytes")
        await client.send(b"\0" * 10)
        await until(lambda: len(peer.received) == 16, "the last bytes")
        assert peer.received == b"abc" + b"\0\0\0\0\xff" + b"\0" * 8


async def test_a_cut_ends_with_fin_or_with_reset_and_newcomers_are_welcome() -> None:
    async with proxied() as (proxy, peer):
        for reset in (False, True):
            async with Raw(proxy.address) as client:
                await client.send(b"ping")
                assert await client.read() == b"pong"
                proxy.cut(reset=reset)
                if reset:
                    with pytest.raises(ConnectionResetError):
                        await client.read()
                else:
                    assert await client.read() == b""
        await until(lambda: len(peer.ended) == 2, "both ends")
        assert [type(end) for end in peer.ended] == [type(None), ConnectionResetError]


async def test_a_cut_after_a_number_of_bytes_is_exact() -> None:
    async with proxied() as (proxy, peer), Raw(proxy.address) as client:
        proxy.cut_after(5, Way.TO_SERVER)
        await client.send(b"abc")
        await until(lambda: peer.received == b"abc", "the first bytes")
        await client.send(b"defgh")
        await until(lambda: peer.ended, "the end")
        assert peer.received == b"abcde"
        async with Raw(proxy.address) as next_client:
            await next_client.send(b"ping")
            assert await next_client.read() == b"pong"


async def test_who_is_not_accepted_connects_to_silence() -> None:
    async with proxied() as (proxy, peer):
        await proxy.stop_accepting()
        async with Raw(proxy.address) as client:
            await client.send(b"ping")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.read()
            assert peer.transports == []
            proxy.accept()
            assert await client.read() == b"pong"


async def test_a_refusing_proxy_keeps_its_connections_and_its_port() -> None:
    async with proxied() as (proxy, _), Raw(proxy.address) as old:
        await old.send(b"ping")
        assert await old.read() == b"pong"
        address = proxy.address
        await proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            Raw(address)
        await old.send(b"ping")
        assert await old.read() == b"pong"
        proxy.accept()
        assert proxy.address == address
        async with Raw(address) as client:
            await client.send(b"ping")
            assert await client.read() == b"pong"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems let nobody listen there then")
async def test_the_port_of_a_refusing_proxy_is_given_to_nobody() -> None:
    async with FaultProxy(f"127.0.0.1:{free_port()}") as proxy:
        address = parse_address(proxy.address)
        await proxy.refuse()
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(address)


async def test_a_target_that_is_not_there_resets_the_client() -> None:
    async with FaultProxy(f"127.0.0.1:{free_port()}") as proxy, Raw(proxy.address) as client:
        with pytest.raises(ConnectionResetError):
            await client.read()


async def test_closing_ends_connections_not_yet_begun() -> None:
    async with proxied() as (proxy, _):
        clients = [Raw(proxy.address) for _ in range(5)]
        await until(lambda: proxy.accepted > 0, "the first to be accepted")
        await proxy.close()
        assert proxy.links == 0
        for client in clients:
            with contextlib.suppress(ConnectionResetError):
                assert await client.read() == b""
            client.socket.close()
