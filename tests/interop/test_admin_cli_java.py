"""`pocketmq admin` beside Apache's mqadmin on the same Java brokers: the same lines."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.cli import run
from tests.interop.groups import wait_for_commits
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import Admin, Jars, Process, wait_until
from tests.interop.tools import complaints

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

AUTH = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
RULES = "org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider"


class Desk:
    """Both tools before a Java cluster with a topic, messages and a group."""

    def __init__(self, java: JavaBroker, admin: Admin, handled: list[bytes]) -> None:
        self.java, self.handled = java, handled
        self._admin = admin

    def ours(self, capsys: pytest.CaptureFixture[str], command: str) -> list[str]:
        name, *rest = self._filled(command).split()
        code = run(["admin", name, "-n", self.java.address, *rest])
        captured = capsys.readouterr()
        assert (code, complaints(captured.err)) == (0, []), captured
        return _lines(captured.out)

    def theirs(self, command: str) -> list[str]:
        name, _, rest = self._filled(command).partition(" ")
        return _lines(self._admin.run(f"{name} -n {self.java.address} {rest}"))

    def _filled(self, command: str) -> str:
        return command.format(a=self.java.brokers["broker-a"], b=self.java.brokers["broker-b"])


def _lines(text: str) -> list[str]:
    """Return the lines without blanks at their ends; Java's maps have no order, so neither here."""
    return sorted(line.rstrip() for line in text.splitlines() if line.strip())


@pytest.fixture(scope="module")
def desk(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    home = tmp_path_factory.mktemp("tools")
    (home / "tool").mkdir()
    settings = {"authenticationMetadataProvider": AUTH, "authorizationMetadataProvider": RULES}
    with (
        java_brokers(jars, home, "broker-a", "broker-b", **settings) as java,
        Admin(jars, home / "tool") as admin,
    ):
        java.create_topic("orders", 2)
        handled: list[bytes] = []
        with (
            mq.Producer(java.address, group="shop") as producer,
            mq.PushConsumer(java.address, group="billing", consume_from="first") as consumer,
        ):
            consumer.subscribe("orders", "*", lambda message: handled.append(message.body))
            for number in range(8):
                producer.send(mq.Message("orders", b"%d" % number, tag="a", keys=[f"k{number}"]))
            wait_until(lambda: len(handled) == 8, "all messages")
            wait_for_commits(java.address, consumer, "billing", "orders")
            yield Desk(java, admin, handled)


def test_users_and_rules_made_here_are_seen_there(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(desk.ours(capsys, "createUser -c Java -u alice -p alice123 -t Normal")) == 2
    rule = "-s User:alice -r Topic:orders,Group:* -a Pub,Sub -d Allow -i 10.0.0.1"
    assert len(desk.ours(capsys, f"createAcl -c Java {rule}")) == 2
    for command in ("getUser -b {a} -u alice", "listUser -b {a}"):
        assert desk.ours(capsys, f"{command} --show-password") == desk.theirs(command)
    for command in ("getAcl -b {a} -s User:alice", "listAcl -b {b}"):
        assert desk.ours(capsys, command) == desk.theirs(command)
    assert len(desk.ours(capsys, "deleteAcl -c Java -s User:alice --yes")) == 2
    assert len(desk.ours(capsys, "deleteUser -c Java -u alice --yes")) == 2


def test_a_group_on_java_brokers_is_explained_moved_and_asked_to_rebalance(
    desk: Desk, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    explained = desk.ours(capsys, "explain -g billing")
    assert "no problems found" in explained
    assert "group billing: 1 members, CLUSTERING, strategy AVG" in explained
    assert len(desk.ours(capsys, "rebalance -g billing")) == 2
    assert {*Counter(desk.handled).values()} == {1}
    moved = desk.ours(capsys, "resetOffsetByTime -g billing -t orders -s 0 --yes")
    places = [line.split() for line in moved if line.startswith("broker-")]
    assert places == [[f"broker-{name}", number, "0"] for name in "ab" for number in "01"]
    wait_until(lambda: min(Counter(desk.handled).values()) == 2, "all messages once more")
    desk.ours(capsys, "sendMessage -t orders -p hello -k letter")
    wait_until(lambda: b"hello" in desk.handled, "what was sent")
    desk.ours(capsys, f"exportMetadata -c Java -f {tmp_path}")
    topics = json.loads((tmp_path / "metadata.json").read_text())["topicConfigTable"]
    assert topics["orders"]["writeQueueNums"] == 4  # of both brokers


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrent", "orderly"])
def test_a_mixed_group_of_java_and_python_is_explained(
    jars: Jars, tmp_path: Path, capsys: pytest.CaptureFixture[str], orderly: bool
) -> None:
    with mq.Cluster(brokers=2, in_process=False) as cluster:
        cluster.create_topic("orders", queues=2)
        words = [cluster.address, "mixed", "orders", "java", *(["orderly"] if orderly else [])]
        command = ["admin", "explain", "-n", cluster.address, "-g", "mixed"]
        first = "group mixed: 2 members, CLUSTERING, strategy AVG"

        def explained() -> str:
            run(command)
            return capsys.readouterr().out

        def settled() -> bool:
            said = explained()
            return said.startswith(f"{first}\n") and "no problems found" in said

        with (
            Process(jars.compiled(tmp_path, "Member", *words), tmp_path),
            mq.PushConsumer(cluster.address, group="mixed", orderly=orderly) as consumer,
        ):
            consumer.subscribe("orders", "*", lambda message: None)
            wait_until(settled, "both members to settle")
            lines = explained().splitlines()
            assert lines[0] == first
            held = [line.split()[3] for line in lines if line.startswith("orders ")]
            assert sorted(held.count(member) for member in set(held)) == [2, 2]
            assert run(["admin", "consumerStatus", "-n", cluster.address, "-g", "mixed", "-s"]) == 0
            assert capsys.readouterr().out.count("#Consumer Properties#") == 2
