"""Our clients on a Java cluster that asks who one is, in the clear and over TLS."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pocketmq as mq
from pocketmq import errors
from pocketmq.admin.access import rules_for
from pocketmq.model import MessageQueue
from pocketmq.protocol.requests.access import User
from tests.access.attempts import ACCESS_FILE, ACCOUNTS, USERS
from tests.interop.jvm import Jars, broker, listens, nameserver, wait_until
from tests.interop.test_access_java import PROVIDERS, ROOT, pkcs8
from tests.net.certificates import Certificates, make_certificates
from tests.ports import free_port

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

TOPIC = "orders"
TOPICS = (TOPIC, "inbox", "outbox", "other")


class Guarded:
    """A Java name server and a Java broker, in the clear or with a broker that speaks TLS only."""

    def __init__(self, jars: Jars, address: str, made: Certificates, *, tls: bool) -> None:
        self.address = address
        self.is_5 = jars.is_5
        self.made = made
        self.tls = tls
        self.user = "root" if jars.is_5 else "rootkey1"
        self.secret = USERS["root"] if jars.is_5 else ACCOUNTS["rootkey1"]

    def settings(self, secret: str = "") -> dict[str, Any]:
        return self._settings(self.user, secret or self.secret)

    def ordinary(self) -> dict[str, Any]:
        """Settings of one who may send to `inbox` and consume `outbox`, no more."""
        if self.is_5:
            return self._settings("alice", USERS["alice"])
        return self._settings("alicekey", ACCOUNTS["alicekey"])

    def _settings(self, user: str, secret: str) -> dict[str, Any]:
        account = mq.Credentials(access_key=user, secret_key=secret)
        found: dict[str, Any] = {"credentials": account}
        return found | ({"tls": self.made.asking()} if self.tls else {})

    def no_right_to(self, topic: str) -> str:
        """Return what a broker says to the ordinary one."""
        if self.is_5:
            return f"User:alice has no permission to access Topic:{topic} from 127.0.0.1"
        return f"AclException: No default permission for topic:{topic}"


def guarded(jars: Jars, home: Path, stack: ExitStack, *, tls: bool) -> Guarded:
    (home / "conf").mkdir(parents=True)
    made = make_certificates(home / "certificates")
    port = free_port()
    running = Guarded(jars, f"127.0.0.1:{free_port()}", made, tls=tls)
    settings: dict[str, object] = {
        "tls.test.mode.enable": "false",
        "tls.server.certPath": made.server,
        "tls.server.keyPath": pkcs8(made.server_key),
    }
    names = {**settings, "tls.server.mode": "permissive"}  # brokers come without TLS
    settings |= {
        "tls.server.mode": "enforcing" if tls else "disabled",
        "listenPort": port,
        "brokerName": "broker-a",
    }
    if jars.is_5:
        settings |= {"authenticationEnabled": "true", "authorizationEnabled": "true"}
        settings |= {"initAuthenticationUser": ROOT, **PROVIDERS}
    else:
        (home / "conf" / "plain_acl.yml").write_text(ACCESS_FILE)
        settings |= {"aclEnable": "true"}
    name_port = int(running.address.rpartition(":")[2])
    stack.enter_context(nameserver(jars, home, name_port, **names))
    stack.enter_context(broker(jars, home, running.address, **settings))
    wait_until(lambda: listens(f"127.0.0.1:{port}"), "a Java broker")
    with mq.Producer(running.address, group="first", **running.settings()) as producer:
        for topic in TOPICS:
            wait_until(partial(_sends, producer, topic), "the broker to be known")
    if jars.is_5:  # with 4.x, the file of accounts has it
        make_ordinary(running)
    return running


def _sends(producer: mq.Producer, topic: str) -> bool:
    try:
        return producer.send(mq.Message(topic, b"first")).ok
    except errors.MQError:
        return False


def make_ordinary(java: Guarded) -> None:
    """Make one who is no super user, with rules."""
    with mq.Admin(java.address, **java.settings()) as admin:
        user = User(username="alice", password=USERS["alice"], user_type="Normal")
        admin.access.create_user(user, "DefaultCluster").all()
        sends = rules_for("User:alice", ["Topic:inbox"], ["Pub"], "Allow")
        admin.access.create_rules(sends, "DefaultCluster").all()
        reads = rules_for("User:alice", ["Topic:outbox", "Group:readers"], ["Sub"], "Allow")
        admin.access.update_rules(reads, "DefaultCluster").all()


# What a broker checks is another thing in each release; TLS lies below and is the same in both.
KINDS = [
    pytest.param(False, id="in the clear", marks=pytest.mark.line("4.x")),
    pytest.param(True, id="over TLS", marks=pytest.mark.line("5.x")),
]


@pytest.fixture(scope="module", params=KINDS)
def java(
    request: pytest.FixtureRequest, jars: Jars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guarded]:
    with ExitStack() as stack:
        yield guarded(jars, tmp_path_factory.mktemp("guarded"), stack, tls=request.param)


def test_one_with_the_right_secret_sends_and_consumes(java: Guarded) -> None:
    settings = java.settings()
    sent = {b"%d" % number for number in range(20)}
    handled: list[bytes] = []
    with mq.Producer(java.address, group="shop", **settings) as producer:
        for body in sent:
            assert producer.send(mq.Message(TOPIC, body, keys=["k"])).ok
        consumer = mq.PushConsumer(java.address, group="billing", consume_from="first", **settings)
        consumer.subscribe(TOPIC, handler=lambda message: handled.append(message.body))
        with consumer:
            wait_until(lambda: sent <= set(handled), "all messages")
    with mq.PullConsumer(java.address, group="audit", consume_from="first", **settings) as reader:
        reader.subscribe(TOPIC)
        read: set[bytes] = set()
        while not sent <= read:
            read.add(next(reader).body)


def test_one_with_a_wrong_secret_is_refused(java: Guarded, jars: Jars) -> None:
    error = refused(java, java.settings("wrong"))
    if jars.is_5:
        assert isinstance(error, errors.NoPermission)
        assert "check signature failed." in str(error)
    else:
        assert isinstance(error, errors.ServerError)
        assert "Check signature failed for accessKey=rootkey1" in str(error)


def test_rules_allow_an_ordinary_one_to_send_to_one_topic_alone(java: Guarded) -> None:
    settings = java.ordinary()
    with mq.Producer(java.address, group="shop", **settings) as producer:
        assert producer.send(mq.Message("inbox", b"allowed")).ok
    for topic in ("outbox", "other"):
        error = refused(java, settings, topic)
        assert isinstance(error, errors.NoPermission if java.is_5 else errors.ServerError)
        assert java.no_right_to(topic) in str(error)


def test_rules_allow_an_ordinary_one_to_consume_one_topic_alone(
    java: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    """Where it may only send it is no member and gets nothing, though there is something."""
    settings: dict[str, Any] = {"group": "readers", "consume_from": "first", **java.ordinary()}
    got: list[str] = []
    for topic in ("outbox", "inbox"):
        consumer = mq.PushConsumer(java.address, **settings)
        consumer.subscribe(topic, handler=lambda message: got.append(message.topic))
        with consumer:
            if topic == "outbox":
                wait_until(lambda: got, "what it may consume")
                assert java.no_right_to(topic) not in caplog.text
            else:
                wait_until(lambda: _heard(caplog, "heartbeat", java), "a refused heartbeat")
    with mq.PullConsumer(java.address, **settings) as reader:
        reader.assign([MessageQueue("inbox", "broker-a", queue) for queue in range(4)])
        asked = "QUERY_CONSUMER_OFFSET" if java.is_5 else "pull"  # 4.x tells how far a group is
        wait_until(lambda: reader.poll(0.1) or _heard(caplog, asked, java), "a refused reader")
        assert reader.poll(0.1) == []
    assert set(got) == {"outbox"}


def _heard(caplog: pytest.LogCaptureFixture, what: str, java: Guarded) -> bool:
    """Return whether a broker's refusal to do something with `inbox` was logged."""
    return any(
        what in each.getMessage() and java.no_right_to("inbox") in each.getMessage()
        for each in list(caplog.records)
    )


def refused(java: Guarded, settings: dict[str, Any], topic: str = TOPIC) -> errors.MQError:
    """Return the error of a send that is not for want of time on a busy machine."""
    with mq.Producer(java.address, group="shop", retries=0, **settings) as producer:
        for _ in range(20):
            with pytest.raises(errors.SendFailed) as caught:
                producer.send(mq.Message(topic, b"x"))
            if not isinstance(caught.value.last_error, errors.SystemBusy):
                break
    assert caught.value.last_error is not None
    return caught.value.last_error


def test_tls_is_spoken_only_with_those_one_believes(java: Guarded, tmp_path: Path) -> None:
    """A broker that speaks TLS hangs up on others; a server of another root is not believed."""
    settings = java.settings()
    if java.tls:
        in_the_clear = {"credentials": settings["credentials"]}
        assert isinstance(refused(java, in_the_clear), errors.TransportError)
    other = make_certificates(tmp_path).asking()
    with (
        pytest.raises(errors.MQError, match="certificate"),
        mq.Producer(java.address, group="shop", **settings | {"tls": other}) as producer,
    ):
        producer.send(mq.Message(TOPIC, b"x"))
