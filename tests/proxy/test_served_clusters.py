"""gRPC clients of `pocketmq up`, `pocketmq proxy` and embedded clusters."""

import asyncio
import signal
from typing import Any

import grpc.aio
import pytest

from pocketmq import errors
from pocketmq.embedded import Cluster, aio
from pocketmq.proxy.wire import service as s
from tests.proxy.peers import Peer, code
from tests.proxy.test_access import signed
from tests.server_process import CommandProcess, ServerProcess


def send(address: str, topic: str = "orders", **user: str) -> str:
    """Send a message and return the name of the status."""

    async def story() -> str:
        async with grpc.aio.insecure_channel(address) as channel:
            peer = Peer(channel, address)
            if user:
                signed(peer, **user)
            return code(await peer.send(topic, b"x"))

    return asyncio.run(story())


def test_an_embedded_cluster_serves_grpc_clients_when_its_address_is_asked_for() -> None:
    with Cluster() as cluster:
        cluster.create_topic("orders", 2)
        assert send(cluster.grpc_address) == "OK"
        assert cluster.grpc_address == cluster.grpc_address


def test_an_embedded_cluster_serves_grpc_clients_from_its_start_on_a_port() -> None:
    async def story() -> None:
        async with aio.Cluster(grpc=0) as cluster:
            await cluster.create_topic("orders", 2)
            async with grpc.aio.insecure_channel(cluster.grpc_address) as channel:
                answer = await Peer(channel, cluster.grpc_address).send("orders", b"x")
                assert code(answer) == "OK"
        async with aio.Cluster() as cluster:
            with pytest.raises(errors.InvalidInput, match="serve_grpc"):
                _ = cluster.grpc_address

    asyncio.run(story())


def test_a_port_in_use_stops_the_whole_start() -> None:
    with Cluster(grpc=0) as cluster:
        port = int(cluster.grpc_address.rpartition(":")[2])
        with pytest.raises(errors.CannotStart, match="the proxy cannot start"):
            Cluster(grpc=port).start()


def test_an_embedded_cluster_with_users_has_them_for_grpc_clients_too() -> None:
    config: dict[str, Any] = {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "initAuthenticationUser": '{"username":"root","password":"secret"}',
    }
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", 2)
        assert send(cluster.grpc_address) == "UNAUTHORIZED"
        assert send(cluster.grpc_address, user="root", secret="wrong") == "UNAUTHORIZED"
        assert send(cluster.grpc_address, user="root", secret="secret") == "OK"


def test_up_tells_the_address_and_stops_its_proxy() -> None:
    with ServerProcess("up", "--port", "0", "--grpc", "0") as cluster:
        assert send(cluster.grpc, "BenchmarkTest") == "ILLEGAL_TOPIC"
        assert send(cluster.grpc, "nowhere") == "TOPIC_NOT_FOUND"
        assert cluster.stop() == 0


def test_a_proxy_alone_serves_any_cluster_until_it_is_stopped() -> None:
    with Cluster() as cluster:
        cluster.create_topic("orders", 2)
        with CommandProcess("proxy", "-n", cluster.address, "--port", "0") as proxy:
            address = proxy.ready.split()[1]
            assert send(address) == "OK"
            assert proxy.stop(signal.SIGTERM) == 0


def test_two_proxies_beside_each_other_share_transactions_and_receipts() -> None:
    """What one proxy began any other can end: clients may come through a load balancer."""

    async def story(first: str, second: str) -> None:
        from pocketmq.proxy.wire import definition as d

        async with (
            grpc.aio.insecure_channel(first) as one,
            grpc.aio.insecure_channel(second) as other,
        ):
            here, there = Peer(one, first), Peer(other, second)
            await here.receive("orders", "g", wait=5)
            half = await here.send("orders", b"x", message_type=d.MessageType.TRANSACTION)
            assert code(half) == "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"
            await there.send("orders", b"x")
            (got,) = await here.received("orders", "g", wait=5)
            handle = got.system_properties.receipt_handle
            assert code(await there.ack("orders", "g", handle)) == "OK"
            end = s.EndTransactionRequest(
                topic=d.Resource(name="orders"), transaction_id="M broker-0 0 0"
            )
            assert code(await there.call("EndTransaction", end)) == "OK"

    with Cluster() as cluster:
        cluster.create_topic("orders", 1)
        with (
            CommandProcess("proxy", "-n", cluster.address, "--port", "0") as first,
            CommandProcess("proxy", "-n", cluster.address, "--port", "0") as second,
        ):
            asyncio.run(story(first.ready.split()[1], second.ready.split()[1]))


def test_options_that_exclude_each_other_are_refused() -> None:
    from tests.cli.in_process import command

    done = command("up", "--grpc", "0", "--no-grpc")
    assert done.returncode == 2
    assert b"exclude each other" in done.stderr
    done = command("proxy", "-n", "127.0.0.1:1", "--access-control")
    assert done.returncode == 2
    assert b"needs --access-key" in done.stderr
