"""Access control and TLS with Java: the same answers from Java's broker, Java clients on ours."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

import pocketmq as mq
from pocketmq.embedded import Cluster
from pocketmq.embedded.settings import Setting
from pocketmq.net import Address
from tests.access.attempts import (
    ACCESS_FILE,
    ACCOUNT_ATTEMPTS,
    ACCOUNT_SETUP,
    ACCOUNTS,
    SAME,
    USER_ATTEMPTS,
    USER_SETUP,
    USERS,
    Answer,
    Attempt,
    Request,
    carried_out,
    sign,
)
from tests.broker.running import client
from tests.interop import jvm
from tests.net.certificates import Certificates, make_certificates
from tests.ports import free_port
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

ROOT = json.dumps({"username": "root", "password": USERS["root"]})
PROVIDERS = {
    f"{what}{part}": f"org.apache.rocketmq.auth.{what}.provider.{prefix}{what.title()}{part}"
    for what in ("authentication", "authorization")
    for part, prefix in (("Provider", "Default"), ("MetadataProvider", "Local"))
}


@contextmanager
def java_broker(jars: jvm.Jars, home: Path, **settings: object) -> Iterator[Address]:
    """Run a Java broker that no name server knows."""
    port = free_port()
    settings |= {"listenPort": port, "brokerName": "broker-a", "enableControllerMode": "false"}
    with jvm.broker(jars, home, "127.0.0.1:1", **settings):
        jvm.wait_until(lambda: jvm.listens(f"127.0.0.1:{port}"), "a Java broker")
        yield Address("127.0.0.1", port)


async def answers_of(
    address: Address, setup: list[Request], attempts: list[Attempt], secrets: dict[str, str]
) -> dict[str, Answer]:
    boss = next(iter(secrets))
    async with client(address) as connected:
        for code, fields, body in setup:
            answer = await connected.ask(code, sign(fields, body, boss, secrets[boss]), body)
            assert answer.code == 0, answer.remark
        return await carried_out(connected, attempts, secrets)


def differing(found: dict[str, Answer], attempts: list[Attempt]) -> dict[str, Answer]:
    """Return what Java answers otherwise than written down; its stack frames do not count."""
    differences = {}
    for attempt in attempts:
        wanted = attempt.answer if attempt.java == SAME else attempt.java
        code, remark = found[attempt.name]
        if code == 1 and remark is not None:
            remark = remark.partition(", org.apache")[0]
        if (code, remark) != wanted and not (attempt.java != SAME and code == wanted[0]):
            differences[attempt.name] = (code, remark)
    return differences


def test_javas_broker_gives_the_answers_written_down(jars: jvm.Jars, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "conf").mkdir(parents=True)
    if jars.is_5:
        settings: dict[str, object] = {
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "initAuthenticationUser": ROOT,
            **PROVIDERS,
        }
        setup, attempts, secrets = USER_SETUP, USER_ATTEMPTS, USERS
    else:
        (home / "conf" / "plain_acl.yml").write_text(ACCESS_FILE)
        settings = {"aclEnable": "true"}
        setup, attempts, secrets = ACCOUNT_SETUP, ACCOUNT_ATTEMPTS, ACCOUNTS
    with java_broker(jars, home, **settings) as address:
        found = asyncio.run(answers_of(address, setup, attempts, secrets))
    assert differing(found, attempts) == {}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def guarded_config(kind: str, directory: Path, made: Certificates) -> dict[str, Setting]:
    """Settings of a cluster that asks who one is, and of one that speaks TLS only, too."""
    config: dict[str, Setting] = {}
    if "users" in kind:
        config |= {"authenticationEnabled": True, "authorizationEnabled": True}
        config |= {"initAuthenticationUser": ROOT}
    if "accounts" in kind:
        (directory / "plain_acl.yml").write_text(ACCESS_FILE)
        config |= {"aclEnable": True, "aclFile": str(directory / "plain_acl.yml")}
    if "TLS" in kind:
        config |= {"tls.server.certPath": made.server, "tls.server.keyPath": made.server_key}
        config |= {"tls.server.trustCertPath": made.root, "tls.server.mode": "enforcing"}
    if "certificates" in kind:
        config |= {"tls.server.need.client.auth": "require"}
    return config


class GuardedClients:
    """Java clients of our clusters, one process for all that speak TLS alike.

    Over TLS they check whom they talk to.
    """

    def __init__(self, jars: jvm.Jars, home: Path, stack: ExitStack, made: Certificates) -> None:
        self._jars, self._home, self._stack, self._made = jars, home, stack, made
        self._running: dict[str, jvm.Process] = {}

    def run(self, kind: str, *arguments: str) -> list[str]:
        """Make a client send and consume; return what it prints."""
        speaks = kind[kind.find("TLS") :] if "TLS" in kind else "in the clear"
        if speaks not in self._running:
            command = jvm.with_properties(
                self._jars.compiled(self._home, "Guarded"), self._properties(speaks)
            )
            process = self._stack.enter_context(jvm.Process(command, self._home))
            self._running[speaks] = process
        process = self._running[speaks]
        start = len(process.lines)
        process.say("\t".join(arguments))

        def done() -> bool:
            process.check_alive()
            return "#done" in process.lines[start:]

        jvm.wait_until(done, f"a client {speaks}")
        return process.lines[start : process.lines.index("#done", start)]

    def _properties(self, speaks: str) -> dict[str, object]:
        if speaks == "in the clear":
            return {}
        settings: dict[str, object] = {
            "enable": "true",
            "test.mode.enable": "false",
            "client.authServer": "true",
            "client.trustCertPath": self._made.root,
        }
        if "certificates" in speaks:
            settings["client.certPath"] = self._made.client
            settings["client.keyPath"] = pkcs8(self._made.client_key)
        return {f"tls.{key}": value for key, value in settings.items()}


@pytest.fixture(scope="module")
def clients(
    jars: jvm.Jars, made: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuardedClients]:
    with ExitStack() as stack:
        yield GuardedClients(jars, tmp_path_factory.mktemp("clients"), stack, made)


def pkcs8(key: str) -> str:
    """Write a key in the one form Java reads."""
    private = serialization.load_pem_private_key(Path(key).read_bytes(), None)
    written = Path(key).with_suffix(".pkcs8")
    written.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(written)


EVERYTHING = ["sent 20", "consumed 20", "found 1", "end"]


@pytest.mark.parametrize(
    ("kind", "user", "secret"),
    [
        ("users", "root", USERS["root"]),
        ("users, TLS", "root", USERS["root"]),
        ("accounts", "rootkey1", ACCOUNTS["rootkey1"]),
        ("TLS with certificates", "", ""),
    ],
)
def test_java_clients_pass(
    clients: GuardedClients, tmp_path: Path, made: Certificates, kind: str, user: str, secret: str
) -> None:
    with Cluster(config=guarded_config(kind, tmp_path, made)) as cluster:
        said = clients.run(kind, cluster.address, user, secret, "made", "g", "20")
    assert said == EVERYTHING


@pytest.mark.parametrize(
    ("kind", "user", "refusal"),
    [
        ("users", "", "refused 16 username cannot be null."),
        ("users", "root", "refused 16 check signature failed."),
        ("accounts", "alicekey", "refused 1 {}: Check signature failed for accessKey=alicekey"),
    ],
)
def test_java_clients_are_refused(
    clients: GuardedClients, tmp_path: Path, made: Certificates, kind: str, user: str, refusal: str
) -> None:
    """What others have sent is there to be consumed; heartbeats and questions are refused."""
    exception = "org.apache.rocketmq.acl.common.AclException"
    root = ("root", USERS["root"]) if kind == "users" else ("rootkey1", ACCOUNTS["rootkey1"])
    with Cluster(config=guarded_config(kind, tmp_path, made)) as cluster:
        account = mq.Credentials(access_key=root[0], secret_key=root[1])
        with mq.Producer(cluster.address, group="shop", credentials=account) as producer:
            assert producer.send(mq.Message("made", b"not for everybody")).ok
        arguments = (cluster.address, user, "wrong secret", "made", "g", "20")
        said = clients.run(kind, *arguments)
    to_consume = ["refused to consume [34, 38]", "consumed 0"]
    assert said == [refusal.format(exception), "sent 0", *to_consume, "end"]


@contextmanager
def tls_only(made: Certificates, directory: Path, kind: str) -> Iterator[tuple[str, str]]:
    """Run a cluster that speaks TLS only, or a broker that does; give where to ask, and who refuses."""
    if kind == "cluster":
        with Cluster(config=guarded_config("TLS", directory, made)) as cluster:
            yield cluster.address, cluster.address
        return
    speaking = ["--port", "0", "--host", "127.0.0.1", "--tls-cert", made.server]
    speaking += ["--tls-key", made.server_key, "--tls-mode"]
    with (
        ServerProcess("namesrv", *speaking, "permissive") as names,
        ServerProcess("broker", *speaking, "enforcing", "--namesrv", names.namesrv) as broker,
    ):
        (refusing,) = broker.brokers.values()
        yield names.namesrv, refusing


@pytest.mark.parametrize("kind", ["cluster", "broker"])
def test_java_clients_in_the_clear_fail_where_tls_is_spoken_only(
    clients: GuardedClients, tmp_path: Path, made: Certificates, kind: str
) -> None:
    with tls_only(made, tmp_path, kind) as (address, refusing):
        arguments = (address, "", "", "made", "g", "20")
        said = "".join(clients.run("in the clear", *arguments))
        assert "sent" not in said
        error = r"because of org\.apache\.rocketmq\.remoting\.exception\.Remoting\w+Exception"
        assert re.search(rf"{error}: [\w ]+</?{refusing}>", said), said
        assert clients.run("TLS", *arguments) == EVERYTHING


@contextmanager
def operator(jars: jvm.Jars, home: Path, user: str, secret: str) -> Iterator[jvm.Admin]:
    """Yield mqadmin with the credentials its own file names."""
    (home / "conf").mkdir()
    (home / "conf" / "tools.yml").write_text(f"accessKey: {user}\nsecretKey: {secret}\n")
    with jvm.Admin(jars, home) as admin:
        yield admin


@pytest.mark.line("5.x")  # 4.x knows no users
def test_mqadmin_makes_users_and_rules(
    clients: GuardedClients, jars: jvm.Jars, tmp_path: Path, made: Certificates
) -> None:
    with (
        Cluster(config=guarded_config("users", tmp_path, made)) as cluster,
        operator(jars, tmp_path, "root", USERS["root"]) as admin,
    ):
        (broker,) = cluster.brokers.values()
        at = f"-n {cluster.address} -b {broker.address}"
        assert "success" in admin.run(f"createUser {at} -u alice -p alice-secret -t Normal")
        rule = "-s User:alice -r Topic:made,Group:g -a Pub,Sub -d Allow -i 127.0.0.1"
        assert "success" in admin.run(f"createAcl {at} {rule}")
        assert "alice" in admin.run(f"listUser {at}")
        listed = admin.run(f"listAcl {at}")
        for word in ("User:alice", "Topic:made", "Group:g", "Pub", "127.0.0.1", "Allow"):
            assert word in listed
        cluster.create_topic("made", 4)
        arguments = (cluster.address, "alice", "alice-secret", "made", "g", "20")
        assert clients.run("users", *arguments) == EVERYTHING
        assert "success" in admin.run(f"deleteAcl {at} -s User:alice")
        said = clients.run("users", *arguments)
        refusal = "has no permission to access Topic:made from 127.0.0.1, no matched policies."
        assert said[0] == f"refused 16 User:alice {refusal}"
        assert "success" in admin.run(f"updateUser {at} -u alice -s disable")
        assert "disable" in admin.run(f"getUser {at} -u alice")
        assert "success" in admin.run(f"deleteUser {at} -u alice")
        assert "alice" not in admin.run(f"listUser {at}")


@pytest.mark.line("4.x")  # 5.x has no commands for accounts
def test_mqadmin_makes_accounts(
    clients: GuardedClients, jars: jvm.Jars, tmp_path: Path, made: Certificates
) -> None:
    with (
        Cluster(config=guarded_config("accounts", tmp_path, made)) as cluster,
        operator(jars, tmp_path, "rootkey1", ACCOUNTS["rootkey1"]) as admin,
    ):
        (broker,) = cluster.brokers.values()
        at = f"-n {cluster.address} -b {broker.address}"
        account = "-a newcomer -s newsecret -t made=PUB|SUB -g g=SUB -m false"
        assert "success" in admin.run(f"updateAclConfig {at} {account}")
        assert "newcomer" in admin.run(f"getAclConfig {at}")
        assert "broker-0" in admin.run(f"clusterAclConfigVersion {at}")
        arguments = (cluster.address, "newcomer", "newsecret", "made", "g", "20")
        assert clients.run("accounts", *arguments) == EVERYTHING
        assert "success" in admin.run(f"deleteAclConfig {at} -a newcomer")
        said = clients.run("accounts", *arguments)
        assert said[0].endswith("AclException: No acl config for newcomer")
        assert "success" in admin.run(f"updateGlobalWhiteAddr {at} -g 127.0.0.1")
        assert clients.run("accounts", *arguments)[0] == "sent 20"
