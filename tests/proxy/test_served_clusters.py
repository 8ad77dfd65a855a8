"""gRPC clients of `pocketmq up`, `pocketmq proxy` and embedded clusters."""

import asyncio
import signal
import ssl
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from cryptography.hazmat.primitives import serialization

from pocketmq import errors
from pocketmq.client.options import ClientOptions
from pocketmq.embedded import Cluster, aio
from pocketmq.proxy.server import Proxy
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s
from tests.cli.in_process import command
from tests.net.certificates import make_certificates
from tests.proxy.peers import QUICK, Peer, code, serving
from tests.proxy.test_access import signed
from tests.server_process import CommandProcess, ServerProcess


def send(address: str, topic: str = "orders", tls: list[bytes] | None = None, **user: str) -> str:
    """Send a message and return the name of the status.

    `tls` holds root certificates and, if it is shown, the client's key and certificate.
    """

    async def story() -> str:
        channel = (
            grpc.aio.insecure_channel(address)
            if tls is None
            else grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(*tls))
        )
        async with channel:
            peer = Peer(channel, address)
            if user:
                signed(peer, **user)
            try:
                return code(await peer.send(topic, b"x"))
            except grpc.aio.AioRpcError as error:
                return str(error.code().name)

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


def test_the_fixture_of_the_pytest_plugin_has_the_address(
    rocketmq: Any, rocketmq_topic: str
) -> None:
    assert send(rocketmq.grpc_address, rocketmq_topic) == "OK"


def test_a_topic_takes_messages_of_its_type_only() -> None:
    with Cluster() as cluster:
        cluster.create_topic("orders", 1, message_type="FIFO")
        assert send(cluster.grpc_address) == "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"


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
    everywhere = ("--host", "0.0.0.0", "--advertise", "localhost")
    with ServerProcess("up", "--port", "0", "--grpc", "0", *everywhere) as cluster:
        assert cluster.grpc.startswith("localhost:")
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


async def test_two_proxies_beside_each_other_share_transactions_and_receipts() -> None:
    """What one proxy began any other can end: clients may come through a load balancer."""
    async with serving() as served:
        options = ClientOptions(name_servers=served.cluster.address)
        other = await Proxy(options, port=0, limits=QUICK).start()
        try:
            async with grpc.aio.insecure_channel(other.address) as channel:
                here, there = served.peer, Peer(channel, other.address)
                await here.receive("normal", "g", wait=0.1)
                await there.send("normal", b"x")
                (got,) = await here.received("normal", "g")
                handle = got.system_properties.receipt_handle
                assert code(await there.ack("normal", "g", handle)) == "OK"
                await here.receive("tx", "g", wait=0.1)
                half = await here.send("tx", b"half", message_type=d.MessageType.TRANSACTION)
                end = s.EndTransactionRequest(
                    topic=d.Resource(name="tx"),
                    message_id=half.entries[0].message_id,
                    transaction_id=half.entries[0].transaction_id,
                    resolution=d.TransactionResolution.COMMIT,
                )
                assert code(await there.call("EndTransaction", end)) == "OK"
                (got,) = await here.received("tx", "g")
                assert got.body == b"half"
        finally:
            await other.stop()


def test_options_that_exclude_each_other_are_refused() -> None:
    done = command("proxy", "-n", "127.0.0.1:1", "--access-control")
    assert done.returncode == 2
    assert b"needs --access-key" in done.stderr
    done = command("proxy", "-n", "127.0.0.1:1", "--serve-key", "key.pem")
    assert done.returncode == 2
    assert b"--serve-key needs --serve-cert" in done.stderr
    done = command("proxy", "-n", "127.0.0.1:1", "--serve-tls", "enforcing")
    assert done.returncode == 2
    assert b"TLS needs a certificate" in done.stderr


def test_a_cluster_whose_brokers_demand_tls_demands_it_of_grpc_clients(tmp_path: Path) -> None:
    """With all that a certificate may need: a password of its key, and one of the client."""
    made = make_certificates(tmp_path)
    encrypt(made.server_key, "sesame")
    file = tmp_path / "broker.conf"
    settings = made.settings("enforcing", auth="require")
    names = {
        "tls_server_mode": "tls.server.mode",
        "tls_server_cert_path": "tls.server.certPath",
        "tls_server_key_path": "tls.server.keyPath",
        "tls_server_need_client_auth": "tls.server.need.client.auth",
        "tls_server_trust_cert_path": "tls.server.trustCertPath",
    }
    lines = [f"{names[key]}={value}" for key, value in settings.items()]
    file.write_text("\n".join([*lines, "tls.server.keyPassword=sesame"]))
    own = [Path(name).read_bytes() for name in (made.root, made.client_key, made.client)]
    with ServerProcess("up", "--port", "0", "--grpc", "0", "-c", str(file)) as cluster:
        assert send(cluster.grpc, "nowhere", tls=own) == "TOPIC_NOT_FOUND"
        assert send(cluster.grpc, "nowhere", tls=own[:1]) == "UNAVAILABLE"
        assert send(cluster.grpc, "nowhere") == "UNAVAILABLE"
        assert cluster.stop() == 0


def encrypt(key: str, password: str) -> None:
    """Put a password on a key's file."""
    plain = serialization.load_pem_private_key(Path(key).read_bytes(), None)
    how = serialization.BestAvailableEncryption(password.encode())
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    Path(key).write_bytes(plain.private_bytes(*form, how))


def test_a_cluster_without_tls_has_none_for_grpc_clients() -> None:
    with Cluster(config={"tls.server.mode": "disabled"}) as cluster:
        cluster.create_topic("orders", 2)
        assert send(cluster.grpc_address) == "OK"
        host, _, port = cluster.grpc_address.rpartition(":")
        with pytest.raises(OSError):  # noqa: PT011 - as TLS sees an answer that is none
            ssl.get_server_certificate((host, int(port)), timeout=5)


def test_an_embedded_cluster_shows_its_brokers_certificate(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    config = {"tls.server.certPath": made.server, "tls.server.keyPath": made.server_key}
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", 2)
        assert send(cluster.grpc_address, tls=[Path(made.root).read_bytes()]) == "OK"
        assert send(cluster.grpc_address) == "OK"
