"""The port without the native core: grpcio serves, behind a relay."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from pocketmq import native
from pocketmq.client.options import ClientOptions
from pocketmq.net import ServerTls, TlsMode
from pocketmq.proxy.relay_inlet import RelayInlet
from pocketmq.proxy.server import Proxy
from pocketmq.proxy.wire.schema import SERVICE
from tests.proxy.peers import Peer, Served, code, serving
from tests.proxy.test_robustness import attack, recorded, serves_again


@pytest.fixture(autouse=True)
def _without_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "core", None)


@asynccontextmanager
async def relayed() -> AsyncIterator[tuple[Served, RelayInlet]]:
    async with serving() as served:
        inlet = served.proxy._inlet
        assert isinstance(inlet, RelayInlet)
        yield served, inlet


async def test_messages_are_sent_received_and_acknowledged() -> None:
    async with relayed() as (served, _):
        stream = await served.peer.consume("g", "normal")
        assert code(await served.peer.send("normal", b"x")) == "OK"
        (got,) = await served.peer.received("normal", "g")
        assert got.body == b"x"
        handle = got.system_properties.receipt_handle
        assert code(await served.peer.ack("normal", "g", handle)) == "OK"
        stream.cancel()


async def test_a_stream_that_is_refused_ends_with_a_code() -> None:
    async with relayed() as (served, _):
        nameless = Peer(served.peer.channel, served.proxy.address, "x" * 600).telemetry()
        assert await nameless.code() is grpc.StatusCode.INVALID_ARGUMENT
    gc.collect()


async def test_tools_can_ask_for_health_and_for_the_services() -> None:
    async with relayed() as (served, _):
        health = health_pb2_grpc.HealthStub(served.peer.channel)
        answer = await health.Check(health_pb2.HealthCheckRequest(service=SERVICE))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        unknown = health.Check(health_pb2.HealthCheckRequest(service="x"))
        assert await unknown.code() is grpc.StatusCode.NOT_FOUND
        stub = reflection_pb2_grpc.ServerReflectionStub(served.peer.channel)
        stream = stub.ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE)])
        )
        assert (await stream.read()).file_descriptor_response.file_descriptor_proto
        stream.cancel()


async def test_calls_on_the_port_inside_are_refused() -> None:
    """It is on loopback, where any process of this machine finds it."""
    async with relayed() as (served, inlet):
        assert code(await served.peer.send("normal", b"x")) == "OK"
        address = str(inlet._inside)
        async with grpc.aio.insecure_channel(address) as channel:
            peer = Peer(channel, address)
            assert code(await peer.send("normal", b"x")) == "FORBIDDEN"
            assert await peer.telemetry().code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_path_that_is_not_text_costs_a_moment() -> None:
    """It makes grpcio's server end, which listens again."""
    async with relayed() as (served, _):
        whole = await recorded(served.proxy.address)
        await attack(served.proxy.address, whole.replace(b"/SendMessage", b"/Send\xffssage"))
        await serves_again(served.proxy.address)


async def test_disabled_tls_leaves_the_port_to_grpcio() -> None:
    async with serving() as served:
        options = ClientOptions(name_servers=served.cluster.address)
        proxy = Proxy(options, port=0, tls=ServerTls(mode=TlsMode.DISABLED))
        await proxy.start()
        try:
            assert proxy._inlet is None
            async with asyncio.timeout(20), grpc.aio.insecure_channel(proxy.address) as channel:
                assert code(await Peer(channel, proxy.address).send("normal", b"x")) == "OK"
        finally:
            await proxy.stop()
