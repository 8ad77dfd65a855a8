"""The port on the native core: codes of gRPC, limits, shutdown, and clients that stall."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from pocketmq import native
from pocketmq.client.options import ClientOptions
from pocketmq.net import Limits, parse_address
from pocketmq.proxy import server
from pocketmq.proxy.native_inlet import NativeInlet
from pocketmq.proxy.native_link import NativeLink
from pocketmq.proxy.server import Proxy
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.wire.schema import SERVICE
from tests.loops import until
from tests.proxy.peers import PATIENCE, Served, code, receive_request, serving
from tests.proxy.test_robustness import PREFACE, proxy_process, serves_again

pytestmark = pytest.mark.skipif(native.core is None, reason="the native core is not built")
SMALL = ProxyLimits(min_long_polling=0.1, largest_request=100_000)


@asynccontextmanager
async def calling(**options: Any) -> AsyncIterator[Served]:
    async with serving(**options) as served:
        assert isinstance(served.proxy._inlet, NativeInlet)
        yield served


async def test_a_proxy_serves_without_loading_grpcio() -> None:
    async with serving() as served, proxy_process(served.cluster.address) as proxy:
        await serves_again(proxy.address)
        loaded = loaded_files(proxy.process.pid)
        assert "pocketmq_core" in loaded
        assert "cygrpc" not in loaded


def loaded_files(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


async def test_an_unknown_method_is_not_implemented() -> None:
    async with calling() as served:
        call = served.peer.channel.unary_unary(f"/{SERVICE}/Nothing")(b"", timeout=PATIENCE)
        assert await call.code() is grpc.StatusCode.UNIMPLEMENTED
        assert await call.details() == f"no method /{SERVICE}/Nothing"


async def test_a_compressed_message_is_not_read() -> None:
    async with calling() as served:
        method = served.peer.channel.unary_unary(f"/{SERVICE}/QueryRoute")
        call = method(b"x" * 5000, timeout=PATIENCE, compression=grpc.Compression.Gzip)
        assert await call.code() is grpc.StatusCode.UNIMPLEMENTED
        assert code(await served.peer.send("normal", b"x")) == "OK"


async def test_a_message_above_the_limit_is_refused() -> None:
    async with calling(limits=SMALL) as served:
        method = served.peer.channel.unary_unary(f"/{SERVICE}/QueryRoute")
        call = method(bytes(SMALL.largest_request + 1), timeout=PATIENCE)
        assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert code(await served.peer.send("normal", bytes(90_000))) == "OK"


async def test_a_call_that_the_client_ends_is_cancelled() -> None:
    async with calling() as served:  # the first receive of a group takes a task
        call = served.peer.stream("ReceiveMessage", receive_request("normal", "g", wait=15))
        await served.polled("normal", "g")
        (link,) = open_links(served.proxy)
        calls = link._calls
        assert calls is not None
        (task,) = [each.task for each in calls._open.values()]
        assert task is not None
        call.cancel()
        await until(lambda: not calls._open, "the end of the call", PATIENCE)
        await until(task.done, "the end of its task", 5.0)
        assert task.cancelled()
        assert code(await served.peer.send("normal", b"x")) == "OK"
    del call
    gc.collect()  # a call that was cancelled refers to its channel


async def test_a_proxy_that_stops_ends_streams_and_says_goodbye(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A stream has no end of its own to wait for, unlike other calls."""
    monkeypatch.setattr(server, "_STOP_GRACE", 60.0)
    async with calling() as served:
        stream = await served.peer.consume("g", "normal")
        loop = asyncio.get_running_loop()
        began = loop.time()
        await served.proxy.stop()
        assert loop.time() - began < 30.0
        assert await stream.code() is grpc.StatusCode.UNAVAILABLE
        assert await stream.details() == "the proxy is shutting down"


@asynccontextmanager
async def limited(served: Served, **limits: Any) -> AsyncIterator[Proxy]:
    """A further proxy, with limits of its own."""
    options = ClientOptions(name_servers=served.cluster.address)
    proxy = await Proxy(options, port=0, network=Limits(**limits)).start()
    try:
        yield proxy
    finally:
        await proxy.stop()


async def test_a_client_that_does_not_greet_is_closed() -> None:
    async with calling() as served, limited(served, handshake=0.2) as proxy:
        assert code(await served.peer.send("normal", b"x")) == "OK"
        reader, writer = await asyncio.open_connection(*parse_address(proxy.address))
        writer.write(PREFACE[:10])
        async with asyncio.timeout(PATIENCE):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(10_000)
        writer.close()


async def test_a_client_that_reads_nothing_is_closed() -> None:
    async with calling() as served, limited(served, write_stall=0.3) as proxy:
        assert code(await served.peer.send("normal", b"x")) == "OK"
        with socket.create_connection(parse_address(proxy.address)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            client.setblocking(False)
            await ping_until_closed(client)
        await until(lambda: not open_links(proxy), "the end of the connection", PATIENCE)


async def ping_until_closed(client: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ping = b"\0\0\x08\x06" + bytes(5 + 8)
    async with asyncio.timeout(PATIENCE):
        with suppress(ConnectionError):
            await loop.sock_sendall(client, PREFACE + b"\0\0\0\x04" + bytes(5))
            while True:
                await loop.sock_sendall(client, ping * 4000)


def open_links(proxy: Proxy) -> list[NativeLink]:
    assert isinstance(proxy._inlet, NativeInlet)
    return list(proxy._inlet._open)
