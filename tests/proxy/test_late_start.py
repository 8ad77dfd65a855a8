"""gRPC's library is loaded for the first client: none waits in vain, and none costs the others."""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import grpc.aio
import pytest

import pocketmq as mq
from pocketmq.client.options import ClientOptions
from pocketmq.embedded import Cluster
from pocketmq.embedded.aio import Cluster as AioCluster
from pocketmq.model import TopicConfig
from pocketmq.net import parse_address
from pocketmq.proxy.front import LateStart
from pocketmq.proxy.server import Proxy
from tests.cli.in_process import command
from tests.loops import until
from tests.proxy.peers import PATIENCE, Peer, code
from tests.server_process import CommandProcess, ServerProcess

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CLIENTS = 50
IDLE = """
import socket, sys
from pocketmq.embedded import Cluster
from pocketmq.model import TopicConfig
with Cluster(grpc=0) as cluster:
    host, _, port = cluster.grpc_address.rpartition(":")
    with socket.create_connection((host, int(port))) as probe:
        pass
    cluster.create_topic("orders", 1)
    print(*sorted({"grpc", "google.protobuf", "grpc_health"} & set(sys.modules)))
"""


def test_an_idle_cluster_has_not_loaded_the_library() -> None:
    """Nor does one whose port is only probed."""
    done = subprocess.run(
        [sys.executable, "-c", IDLE], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "\n"


async def send(address: str, number: int) -> str:
    """Send a message as a client with a connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        peer = Peer(channel, address, f"c@{number}")
        return code(await peer.send("orders", b"%d" % number))


async def send_again(address: str) -> str:
    """Send a message, as clients do whose proxy was killed: until it works."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await send(address, 0)
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.05)


async def send_all(address: str) -> list[str]:
    return await asyncio.gather(*(send(address, number) for number in range(CLIENTS)))


def test_many_clients_may_be_the_first_at_once() -> None:
    with Cluster() as cluster:
        cluster.create_topic("orders", 2)
        with CommandProcess("proxy", "-n", cluster.address, "--port", "0") as proxy:
            found = asyncio.run(send_all(proxy.ready.split()[1]))
            assert found == ["OK"] * CLIENTS
            assert proxy.stop(signal.SIGTERM) == 0


def test_a_proxy_may_be_stopped_while_it_loads() -> None:
    with (
        Cluster() as cluster,
        CommandProcess("proxy", "-n", cluster.address, "--port", "0") as proxy,
        socket.create_connection(parse_address(proxy.ready.split()[1])) as client,
    ):
        client.sendall(PREFACE)
        assert proxy.stop(signal.SIGTERM) == 0
        client.settimeout(PATIENCE)
        with suppress(ConnectionError):
            while client.recv(65536):
                pass
        assert "failed" not in proxy.errors()


async def test_a_client_that_waits_is_closed_with_the_proxy() -> None:
    async with AioCluster() as cluster:
        proxy = await Proxy(ClientOptions(name_servers=cluster.address), port=0).start()
        reader, writer = await asyncio.open_connection(*parse_address(proxy.address))
        writer.write(PREFACE)
        late = proxy._late
        assert late is not None
        await until(lambda: late._task is not None, "the start")
        await proxy.stop()
        async with asyncio.timeout(PATIENCE):
            with suppress(ConnectionError):
                while await reader.read(65536):
                    pass
        writer.close()


def test_a_library_that_cannot_be_loaded_is_logged_once_and_tried_again(tmp_path: Path) -> None:
    damaged = tmp_path / "grpc_health"
    damaged.mkdir()
    (damaged / "__init__.py").write_text("raise ImportError('damaged')")
    path = f"{tmp_path}:{':'.join(filter(None, sys.path))}"
    with Cluster() as cluster:
        cluster.create_topic("orders", 2)
        words = ("proxy", "-n", cluster.address, "--port", "0")
        with CommandProcess(*words, variables={"PYTHONPATH": path}) as proxy:
            address = proxy.ready.split()[1]
            with socket.create_connection(parse_address(address)) as client:
                client.settimeout(PATIENCE)
                client.sendall(PREFACE)
                with suppress(ConnectionResetError):
                    assert client.recv(1) == b""
            shutil.rmtree(damaged)
            assert asyncio.run(send(address, 0)) == "OK"
            assert proxy.stop() == 0
            (line,) = [each for each in proxy.lines if "failed to start" in each]
            assert 'error="ImportError: damaged"' in line


UP = ("up", "--port", "0", "--grpc", "0")


def new_child(cluster: ServerProcess, others: list[int]) -> int:
    """Wait for a process more."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for pid in cluster.children():
            if pid not in others:
                return pid
    raise AssertionError("no process was started")


def test_up_runs_its_proxy_from_the_first_client_on() -> None:
    with ServerProcess(*UP) as cluster:
        idle = cluster.children()
        assert len(idle) == 1  # the broker
        with mq.Admin(cluster.namesrv) as admin:
            admin.topics.create(TopicConfig(topic_name="orders")).all()
        assert asyncio.run(send_all(cluster.grpc)) == ["OK"] * CLIENTS
        proxy = new_child(cluster, idle)
        os.kill(proxy, signal.SIGKILL)
        assert asyncio.run(send_again(cluster.grpc)) == "OK"
        assert new_child(cluster, [*idle, proxy])
        assert cluster.stop() == 0
        assert "proxy process exited unexpectedly: code=-9" in cluster.errors()


def test_a_proxy_that_dies_while_it_starts_closes_its_clients_and_is_started_again() -> None:
    lines: list[str] = []
    while not lines:  # on a busy machine the proxy may be quicker than its killer
        lines = kill_while_it_starts()
    (line,) = lines
    assert "its process exited during start-up" in line


def kill_while_it_starts() -> list[str]:
    """Return what was logged of a failed start."""
    with ServerProcess(*UP) as cluster:
        idle = cluster.children()
        with socket.create_connection(parse_address(cluster.grpc)) as client:
            client.settimeout(PATIENCE)
            os.kill(new_child(cluster, idle), signal.SIGKILL)
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""
        assert asyncio.run(send_again(cluster.grpc)) == "TOPIC_NOT_FOUND"
        assert cluster.stop() == 0
        return [each for each in cluster.lines if "failed to start" in each]


def test_up_may_be_stopped_while_its_proxy_starts() -> None:
    with ServerProcess(*UP) as cluster:
        idle = cluster.children()
        with socket.create_connection(parse_address(cluster.grpc)) as client:
            new_child(cluster, idle)
            assert cluster.stop() == 0
            client.settimeout(PATIENCE)
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""


def test_a_port_in_use_is_reported_at_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = command("up", "--port", "0", "--grpc", str(taken.getsockname()[1]))
    assert done.returncode == 1
    assert b"in use" in done.stderr


async def test_one_start_serves_all_that_wait_and_a_failed_one_is_repeated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    starts = []

    async def start() -> None:
        starts.append(True)
        await asyncio.sleep(0)
        if len(starts) == 1:
            raise RuntimeError("no port")

    late = LateStart(start)
    assert await asyncio.gather(*(late.done() for _ in range(5))) == [False] * 5
    (line,) = [each.getMessage() for each in caplog.records]
    assert 'failed to start: error="RuntimeError: no port"' in line
    assert await asyncio.gather(*(late.done() for _ in range(5))) == [True] * 5
    assert len(starts) == 2
    await late.close()
