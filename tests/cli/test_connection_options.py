"""How commands are let into a cluster that asks for users and TLS; real processes."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from pocketmq import Cluster
from tests.cli import in_process
from tests.net.certificates import Certificates, make_certificates
from tests.server_process import POCKETMQ

SECRET = "POCKETMQ_SECRET_KEY"
USER = {"POCKETMQ_ACCESS_KEY": "root", SECRET: "secret12"}
FROM_FIRST = ("--from", "first", "--count", "1", "--timeout", "30", "--pull")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(made: Certificates) -> Iterator[Cluster]:
    config: dict[str, str | int | bool] = {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "initAuthenticationUser": '{"username":"root","password":"secret12"}',
        "innerClientAuthenticationCredentials": '{"accessKey":"root","secretKey":"secret12"}',
        "tls.server.mode": "enforcing",
        "tls.server.certPath": made.server,
        "tls.server.keyPath": made.server_key,
    }
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", 1)
        yield cluster


def run(
    *arguments: str, stdin: bytes = b"", environment: dict[str, str] | None = None
) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [POCKETMQ, *arguments],
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
        env=os.environ | (environment or {}),
    )
    return done.returncode, done.stdout, done.stderr


def here(
    *arguments: str, stdin: bytes = b"", environment: dict[str, str] | None = None
) -> tuple[int, bytes, bytes]:
    """Do so in this process."""
    done = in_process.command(*arguments, stdin=stdin, variables=environment)
    return done.returncode, done.stdout, done.stderr


def test_all_commands_get_in_with_a_user_and_the_roots(
    guarded: Cluster, made: Certificates
) -> None:
    """The secret is the first line of standard input, and no byte behind it is lost."""
    user = ("--access-key", "root", "--secret-key", "-")
    entry = ("-n", guarded.address, "--tls-ca", made.root, *user)
    secret = b"secret12\n"
    assert run("produce", "-t", "orders", *entry, stdin=secret + b"one\n") == (0, b"", b"")
    consume = ("consume", "-t", "orders", "-g", "billing", *FROM_FIRST)
    assert run(*consume, *entry, stdin=secret) == (0, b"one\n", b"")
    listed = run("admin", "topicClusterList", "-t", "orders", *entry, stdin=secret)
    assert listed == (0, b"DefaultCluster\n", b"")


def test_any_server_is_believed_only_when_told(guarded: Cluster) -> None:
    asked = ("admin", "topicClusterList", "-t", "orders", "-n", guarded.address)
    code, out, err = here(*asked, "--tls", environment=USER)
    assert (code, out, err.count(b"\n")) == (4, b"", 1)
    assert b"certificate" in err
    listed = here(*asked, "--tls-no-verify", environment=USER)
    assert listed == (0, b"DefaultCluster\n", b"")


def test_the_environment_names_the_user(guarded: Cluster, made: Certificates) -> None:
    entry = ("-n", guarded.address, "--tls-ca", made.root)
    sent = run("produce", "-t", "orders", *entry, stdin=b"two\n", environment=USER)
    assert sent == (0, b"", b"")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--access-key", "root"), "credentials need an access key and a secret key"),
        (("--tls-ca", "nowhere.pem"), "nowhere.pem"),
        ((), "no name server responds"),
        (("--access-key", "root"), ""),
    ],
    ids=["half a user", "no such file", "without TLS", "wrong secret"],
)
@pytest.mark.parametrize("command", ["produce", "consume", "admin"])
def test_mistakes_are_one_line_without_the_secret(
    guarded: Cluster,
    made: Certificates,
    command: str,
    options: tuple[str, ...],
    said: str,
) -> None:
    asked = {
        "produce": ("produce", "-t", "orders"),
        "consume": ("consume", "-t", "orders", *FROM_FIRST, "--timeout", "3"),
        "admin": ("admin", "brokerStatus", "-c", "DefaultCluster"),
    }[command]
    environment = {}
    if not said:
        options = (*options, "--tls-ca", made.root)
        environment = {SECRET: "wrong"}
    asked = (*asked, "-n", guarded.address, *options)
    code, out, err = here(*asked, stdin=b"three\n", environment=environment)
    assert code != 0
    assert out == b""
    assert err.count(b"\n") == 1
    assert said.encode() in err
    assert b"wrong" not in err


@pytest.mark.parametrize("way", [(), ("--pull",)], ids=["push", "pull"])
def test_a_consumer_that_is_refused_says_so(
    guarded: Cluster, made: Certificates, way: tuple[str, ...]
) -> None:
    entry = ("-n", guarded.address, "--tls-ca", made.root, "--access-key", "root")
    asked = ("consume", "-t", "orders", *entry, *way)
    wrong = {SECRET: "not this one"}
    for patience in ("2", "10"):  # more, if a busy machine has not let it ask in time
        given = ("--count", "1", "--timeout", patience)
        code, out, err = run(*asked, *given, environment=wrong)
        if b"NO_PERMISSION" in err:
            break
    assert (code, out, err.count(b"\n")) == (1, b"", 1)
    assert err.startswith(b"pocketmq: only 0 of 1 messages arrived (")
    assert b"NO_PERMISSION" in err
    with subprocess.Popen(
        [POCKETMQ, *asked], stderr=subprocess.PIPE, text=True, env=os.environ | wrong
    ) as waiting:
        assert waiting.stderr is not None
        told = waiting.stderr.readline()  # at once: nothing else would ever be said
        waiting.terminate()
    assert told.startswith("pocketmq: ")
    assert "NO_PERMISSION" in told
    assert waiting.returncode == 0
