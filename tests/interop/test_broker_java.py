"""Java producers and consumers on our broker, found through our name server."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.embedded import Cluster
from pocketmq.model import MessageQueue, SysFlag
from pocketmq.model.java_strings import java_hash
from pocketmq.model.kinds import COMPRESSION_MASK
from tests.interop.jvm import PATIENCE, Admin, Jars, Process, wait_until

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

AT_ONCE = 5.0
"""Seconds; a broker that forgets a waiting pull answers it when its 15 are over."""
BODIES = [
    f"{kind}{n}" for kind in ("sync", "async", "oneway", "batch", "chosen") for n in range(10)
]
EVEN = {body for body in BODIES if java_hash(body) % 2 == 0}
SENT = re.compile(
    r"(\w+) (\w+) SEND_OK ([0-9A-F]+(?:,[0-9A-F]+)*) ([0-9A-F]+(?:,[0-9A-F]+)*) (\d+) (\S+) true"
)


class Java:
    """Runs orders of the Java program against one cluster."""

    def __init__(self, jars: Jars, home: Path, cluster: Cluster) -> None:
        self.jars = jars
        self.home = home
        self.cluster = cluster
        self.address = cluster.address

    def start(self, order: str, *arguments: object) -> Process:
        words = [order, self.address, *map(str, arguments)]
        return Process(self.jars.compiled(self.home, "BrokerWork", *words), self.home)

    def run(self, order: str, *arguments: object) -> list[str]:
        with self.start(order, *arguments) as process:
            lines = process.wait_for_end()
        assert "end" in lines, "\n".join(lines)
        return lines


@pytest.fixture(scope="module")
def java(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Java]:
    home = tmp_path_factory.mktemp("java")
    with Cluster(data=home / "data") as cluster:
        yield Java(jars, home, cluster)


@pytest.fixture(scope="module")
def sent(java: Java) -> dict[str, list[re.Match[str]]]:
    """What was said of every send, by how it was sent; the topic is made by the first."""
    found: dict[str, list[re.Match[str]]] = {}
    lines = java.run("produce", "Work")
    for said in filter(None, map(SENT.fullmatch, lines)):
        found.setdefault(said[1], []).append(said)
    return found


def got(lines: list[str]) -> list[str]:
    return [line.split(" ")[1] for line in lines if line.startswith("got ")]


def test_every_way_of_sending_is_acknowledged(sent: dict[str, list[re.Match[str]]]) -> None:
    assert {how: len(said) for how, said in sent.items()} == {
        "sync": 10, "async": 10, "batch": 1, "chosen": 10, "large": 1,
    }  # fmt: skip
    assert {each[6] for said in sent.values() for each in said} == {"DefaultRegion"}
    (batch,) = sent["batch"]
    assert len(batch[4].split(",")) == 10
    offsets = [int(each[5]) for each in sent["chosen"]]
    assert offsets == list(range(offsets[0], offsets[0] + 10))


@pytest.mark.usefixtures("sent")
def test_a_push_consumer_gets_everything_once(java: Java) -> None:
    lines = java.run("push", "Work", "push-all", "*", 51)
    assert sorted(got(lines)) == sorted([*BODIES, "large"])
    (large,) = [line for line in lines if line.startswith("got large")]
    size, stored, flags = map(int, large.split(" ")[-3:])
    assert (size, flags & COMPRESSION_MASK) == (100_000, SysFlag.ZLIB)
    assert stored < 1000  # as it was packed by the producer


@pytest.mark.usefixtures("sent")
def test_a_push_consumer_gets_its_tags(java: Java) -> None:
    lines = java.run("push", "Work", "push-even", "even || none", len(EVEN) + 1)
    assert set(got(lines)) == EVEN | {"large"}


@pytest.mark.usefixtures("sent")
def test_a_push_consumer_gets_what_its_sql_selects(java: Java) -> None:
    wanted = {body for body in EVEN if abs(_remainder(java_hash(body))) > 4}
    lines = java.run("push", "Work", "push-sql", "sql:TAGS = 'even' AND n > 4", len(wanted))
    assert set(got(lines)) == wanted


def _remainder(number: int) -> int:
    """Java's `%`, which keeps the sign."""
    return number % 10 if number >= 0 else -(-number % 10)


@pytest.mark.usefixtures("sent")
def test_an_orderly_consumer_gets_each_queue_in_order(java: Java) -> None:
    lines = java.run("orderly", "Work", "orderly", 51)
    assert sorted(got(lines)) == sorted([*BODIES, "large"])
    offsets: dict[str, list[int]] = {}
    for line in lines:
        if line.startswith("got "):
            words = line.split(" ")
            offsets.setdefault(words[5], []).append(int(words[6]))
    assert all(found == sorted(found) for found in offsets.values())


@pytest.mark.usefixtures("sent")
def test_a_lite_pull_consumer_gets_its_tags(java: Java) -> None:
    lines = java.run("lite", "Work", "lite", "even", len(EVEN) + 1)
    assert set(got(lines)) == EVEN | {"large"}


def test_messages_are_found_by_id_and_key(java: Java, sent: dict[str, list[re.Match[str]]]) -> None:
    identity = sent["sync"][3][4]
    lines = java.run("find", "Work", identity, "key-batch7")
    found = [line for line in lines if line.startswith(("id ", "key "))]
    assert found == ["id sync3 key-sync3 127.0.0.1", "key batch7"]


def test_a_waiting_consumer_gets_a_message_at_once(java: Java) -> None:
    """The first round shows that the queues have their owner; its pulls wait in the others."""
    java.cluster.create_topic("Later", 4)
    with (
        java.start("push", "Later", "later", "*", 16) as process,
        mq.Producer(java.address, group="shop") as producer,
    ):
        wanted: list[str] = []
        for patience in (PATIENCE, AT_ONCE, AT_ONCE, AT_ONCE):
            for queue in range(4):
                wanted.append(f"later{len(wanted)}")
                message = mq.Message("Later", wanted[-1].encode())
                assert producer.send(message, queue=MessageQueue("Later", "broker-0", queue)).ok
            wait_until(lambda: len(got(list(process.lines))) == len(wanted), "a round", patience)
        assert "end" in process.wait_for_end()
        assert sorted(got(process.lines)) == sorted(wanted)


def test_many_sends_at_once_are_all_acknowledged(java: Java) -> None:
    lines = java.run("load", "Load", 20000)
    (loaded,) = [line for line in lines if line.startswith("loaded ")]
    assert loaded.startswith("loaded 20000 failed [] ms "), loaded


def test_mqadmin_sees_the_broker(java: Java) -> None:
    with Admin(java.jars, java.home) as admin:
        shown = admin.run(f"clusterList -n {java.address}")
        assert re.search(r"DefaultCluster\s+broker-0\s+0\s+127\.0\.0\.1:\d+\s+V5_3_3", shown), shown
        assert "Exception" not in shown
        shown = admin.run(f"topicRoute -n {java.address} -t DefaultCluster")
        assert "broker-0" in shown
