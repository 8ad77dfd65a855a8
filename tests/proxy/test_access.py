"""Who may do what through the proxy, and by which connection."""

import asyncio
import gc
import hmac
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha1
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from pocketmq.client.options import ClientOptions, Credentials
from pocketmq.errors import CannotStart, InvalidInput
from pocketmq.net import ServerTls, TlsMode
from pocketmq.protocol.requests.access import Acl, Policy, PolicyEntry, User
from pocketmq.proxy.server import Proxy
from pocketmq.proxy.translation.limits import ProxyAccess
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s
from pocketmq.proxy.wire.schema import SERVICE
from tests.net.certificates import make_certificates
from tests.proxy.peers import PATIENCE, Peer, Served, code, serving

ROOT = Credentials(access_key="root", secret_key="secret")
GUARDED: dict[str, Any] = {
    "authenticationEnabled": True,
    "authorizationEnabled": True,
    "initAuthenticationUser": '{"username":"root","password":"secret"}',
    "credentials": ROOT,
    "access": ProxyAccess(authenticate=True, authorize=True),
}
NOT_ALLOWED = (
    "User:writer has no permission to access Topic:fifo from 127.0.0.1, no matched policies."
)
TIME = "20261117T000000Z"


def signed(peer: Peer, user: str, secret: str) -> Peer:
    """Make a client sign its calls as RocketMQ's 5.x clients do."""
    signature = hmac.new(secret.encode(), TIME.encode(), sha1).hexdigest()
    value = f"MQv2-HMAC-SHA1 Credential={user}, SignedHeaders=x-mq-date-time, Signature={signature}"
    peer.metadata = [
        *peer.metadata[:2],
        ("x-mq-date-time", TIME),
        ("authorization", value),
    ]
    return peer


async def create_user(served: Served, name: str, *rules: tuple[str, str]) -> None:
    access = served.admin.access
    (await access.create_user(User(username=name, password="pass"))).all()
    entries = [
        PolicyEntry(resource=resource, actions=[action], decision="Allow")
        for resource, action in rules
    ]
    policies = [Policy(policy_type="Custom", entries=entries)]
    (await access.create_rules(Acl(subject=f"User:{name}", policies=policies))).all()


async def test_only_signed_calls_of_known_users_pass() -> None:
    async with serving(**GUARDED) as served:
        peer = served.peer
        outcomes = {}
        unsigned = await peer.send("normal", b"x")
        outcomes["unsigned"] = unsigned.status.message
        for user, secret in (("root", "secret"), ("root", "wrong"), ("nobody", "x")):
            answer = await signed(peer, user, secret).send("normal", b"x")
            outcomes[f"{user} {secret}"] = answer.status.message
            assert (code(answer) == "UNAUTHORIZED") is (secret != "secret")
        assert outcomes == {
            "unsigned": "username cannot be null.",
            "root secret": "OK",
            "root wrong": "check signature failed.",
            "nobody x": "User:nobody is not found.",
        }


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("x", "authentication header is incorrect."),
        ("x y", "authentication keyValues length is incorrect, actual length=1."),
        ("x Credential=", "username cannot be null."),
        ("x Credential=root", "check signature failed."),
        ("x Credential=root, Signature=zz", "check signature failed."),
    ],
)
async def test_broken_signatures_are_refused(header: str, text: str) -> None:
    async with serving(**GUARDED) as served:
        served.peer.metadata += [("x-mq-date-time", TIME), ("authorization", header)]
        answer = await served.peer.send("normal", b"x")
        assert (code(answer), answer.status.message) == ("UNAUTHORIZED", text)


async def test_rules_decide_what_a_user_may_do() -> None:
    async with serving(**GUARDED) as served:
        await create_user(served, "writer", ("Topic:normal", "Pub"))
        await create_user(served, "reader", ("Topic:normal", "Sub"), ("Group:g", "Sub"))
        peer = signed(served.peer, "writer", "pass")
        assert code(await peer.send("normal", b"x")) == "OK"
        refused = await peer.send("fifo", b"x", message_group="g")
        assert (code(refused), refused.status.message) == (
            "UNAUTHORIZED",
            NOT_ALLOWED,
        )
        assert code((await peer.receive("normal", "g"))[0]) == "UNAUTHORIZED"
        signed(peer, "reader", "pass")
        assert code((await peer.receive("normal", "g"))[0]) in ("OK", "MESSAGE_NOT_FOUND")
        assert code((await peer.receive("normal", "other"))[0]) == "UNAUTHORIZED"
        assert code(await peer.send("normal", b"x")) == "UNAUTHORIZED"


async def test_settings_need_rights_too() -> None:
    async with serving(**GUARDED) as served:
        await create_user(served, "writer", ("Topic:normal", "Pub"))
        peer = signed(served.peer, "writer", "pass")
        assert await settled(peer, "normal") == "OK"
        assert await settled(peer, "fifo") == "UNAUTHORIZED"
    gc.collect()  # a stream that the server ended refers to itself in grpcio


async def settled(peer: Peer, topic: str) -> str:
    """The status of the settings of a producer."""
    stream = peer.telemetry()
    settings = d.Settings(
        client_type=d.ClientType.PRODUCER, publishing={"topics": [{"name": topic}]}
    )
    await stream.write(s.TelemetryCommand(settings=settings))
    status = code(await stream.read())
    stream.cancel()
    return status


async def test_a_made_up_handle_copies_no_message_of_another_topic() -> None:
    async with serving(**GUARDED) as served:
        await create_user(served, "reader", ("Topic:normal", "Sub"), ("Group:g", "Sub"))
        root = signed(served.peer, "root", "secret")
        await root.send("fifo", b"secret", message_group="g")
        peer = signed(served.peer, "reader", "pass")
        await peer.receive("normal", "g")
        (place,) = await served.admin.brokers.targets()
        now = "9" * 13
        request = s.ForwardMessageToDeadLetterQueueRequest(
            group=d.Resource(name="g"),
            topic=d.Resource(name="normal"),
            receipt_handle=f"0 {now} 60000 0 0 {place.broker} 0 0 0",
            message_id="m",
        )
        answer = await peer.call("ForwardMessageToDeadLetterQueue", request)
        assert code(answer) == "INVALID_RECEIPT_HANDLE"
        assert answer.status.message == "the message is not one of this topic"


def trusting(root: str) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(Path(root).read_bytes())


async def test_clients_use_tls_or_not_as_they_like(tmp_path: Path) -> None:
    """As on Apache's port; a client that wants to verify it needs a certificate that was given."""
    made = make_certificates(tmp_path)
    async with served_over(made.serving()) as address:
        async with grpc.aio.secure_channel(address, trusting(made.root)) as channel:
            assert code(await Peer(channel, address).send("normal", b"x")) == "OK"
        async with grpc.aio.insecure_channel(address) as channel:
            assert code(await Peer(channel, address).send("normal", b"x")) == "OK"


async def test_without_a_certificate_there_is_a_self_signed_one() -> None:
    async with serving() as served:
        host, _, port = served.proxy.address.rpartition(":")
        shown = await asyncio.to_thread(ssl.get_server_certificate, (host, int(port)))
        trusted = grpc.ssl_channel_credentials(shown.encode())
        named = [("grpc.ssl_target_name_override", "localhost")]
        async with grpc.aio.secure_channel(served.proxy.address, trusted, named) as channel:
            assert code(await Peer(channel, served.proxy.address).send("normal", b"x")) == "OK"


async def test_an_enforcing_proxy_serves_no_plain_client(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    async with served_over(made.serving(TlsMode.ENFORCING)) as address:
        async with grpc.aio.secure_channel(address, trusting(made.root)) as channel:
            assert code(await Peer(channel, address).send("normal", b"x")) == "OK"
        async with grpc.aio.insecure_channel(address) as channel:
            method = channel.unary_unary(f"/{SERVICE}/QueryRoute")
            call = method(b"", timeout=PATIENCE)
            assert await call.code() is grpc.StatusCode.UNAVAILABLE


async def test_disabled_tls_serves_plain_clients_alone() -> None:
    async with (
        served_over(ServerTls(mode=TlsMode.DISABLED)) as address,
        grpc.aio.insecure_channel(address) as channel,
    ):
        assert code(await Peer(channel, address).send("normal", b"x")) == "OK"
        host, _, port = address.rpartition(":")
        with pytest.raises(OSError):  # noqa: PT011 - as TLS sees an answer that is none
            await asyncio.to_thread(ssl.get_server_certificate, (host, int(port)), timeout=5)


async def test_tls_files_that_do_not_fit_are_refused_at_the_start(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    async with serving() as served:
        options = ClientOptions(name_servers=served.cluster.address)
        other = ServerTls(cert=made.server, key=made.client_key)
        with pytest.raises(InvalidInput, match="TLS cannot use"):
            await Proxy(options, port=0, tls=other).start()


@asynccontextmanager
async def served_over(tls: ServerTls) -> AsyncIterator[str]:
    """Run a further proxy, with a TLS of its own."""
    async with serving() as served:
        options = ClientOptions(name_servers=served.cluster.address)
        proxy = Proxy(options, port=0, tls=tls)
        await proxy.start()
        try:
            yield proxy.address
        finally:
            await proxy.stop()


async def test_a_port_in_use_is_said_at_the_start() -> None:
    async with serving() as served:
        port = int(served.proxy.address.rpartition(":")[2])
        assert "it cannot listen on 127.0.0.1:" in await failure(served, port)
    gc.collect()  # the error's traceback refers to the server


async def failure(served: Served, port: int) -> str:
    """Why a proxy does not start."""
    options = ClientOptions(name_servers=served.cluster.address)
    try:
        await Proxy(options, port=port).start()
    except CannotStart as error:
        return str(error)
    return ""


async def test_tools_can_ask_for_health_and_for_the_services() -> None:
    async with serving() as served:
        health = health_pb2_grpc.HealthStub(served.peer.channel)
        answer = await health.Check(health_pb2.HealthCheckRequest(service=SERVICE))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        stub = reflection_pb2_grpc.ServerReflectionStub(served.peer.channel)
        ask = reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE)
        stream = stub.ServerReflectionInfo(iter([ask]))
        described = await stream.read()
        assert described.file_descriptor_response.file_descriptor_proto
        stream.cancel()
