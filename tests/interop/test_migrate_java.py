"""`pocketmq migrate` to a Java broker: an embedded cluster is outgrown, nothing is lost."""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

import pocketmq as mq
from pocketmq import Cluster
from pocketmq.model import GroupConfig
from pocketmq.protocol import ReceivedMessage
from tests.cli.migrating import FIRST, Operator, move_while_open
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import PATIENCE, Jars
from tests.server_process import wait_for

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def java(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    """Yield a broker that reports its kind: one of 4.9 counts for a second before it responds."""
    with (
        java_brokers(jars, tmp_path_factory.mktemp("java"), "broker-a") as running,
        mq.Admin(running.address) as admin,
    ):
        wait_for(lambda: not admin.brokers.status().missing, "what the broker is", PATIENCE)
        yield running


class Group:
    """A member of a group that takes some messages; those that are bad fail once."""

    def __init__(self, address: str, *, fails: bool) -> None:
        self.got: list[bytes] = []
        self._fails = fails
        self.failed = 0
        self._consumer = mq.PushConsumer(address, group="billing", consume_from=FIRST)
        self._consumer.subscribe("orders", "*", self._take)

    def _take(self, message: ReceivedMessage) -> None:
        if self._fails and message.tag == "bad":
            self.failed += 1
            raise mq.RetryLater(5)  # in a minute: after the move
        self.got.append(message.body)

    def __enter__(self) -> Self:
        self._consumer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()


def send(address: str, numbers: range, *, tag: str | None = None) -> None:
    with mq.Producer(address, group="shop") as producer:
        messages = [
            mq.Message("orders", b"%d" % n, tag=tag, keys=[f"k{n}"], properties={"n": str(n)})
            for n in numbers
        ]
        producer.send_batch(messages[: len(messages) // 2])
        for message in messages[len(messages) // 2 :]:
            producer.send(message, ordering_key="customer")


@pytest.mark.line("5.x")  # what 4.9 is asked for, the next test has
def test_producers_and_consumers_move_to_a_java_cluster_and_nothing_is_lost(
    java: JavaBroker, tmp_path: Path
) -> None:
    """While they go on, and the copy is killed twice; twice comes what was announced."""
    with Cluster(brokers=2, in_process=False) as source:
        source.create_topic("open-orders", queues=2)
        operator = Operator(source.address, java.address, tmp_path / "state")
        move_while_open(operator, "open-orders", "open-billing", PATIENCE)


@pytest.mark.line("4.x")
def test_a_group_moves_to_a_cluster_of_4_9(java: JavaBroker, tmp_path: Path) -> None:
    """All but messages that wait: those brokers know no timers, and would deliver them at once."""
    with Cluster(brokers=2, in_process=False) as source:
        operator = Operator(source.address, java.address, tmp_path / "state")
        source.create_topic("orders", queues=2)
        send(source.address, range(300))
        with Group(source.address, fails=False) as before:
            wait_for(lambda: len(before.got) == 300, "the group at work")
        send(source.address, range(300, 400))
        refused = operator.run("copy", "--move-delayed", code=1)
        assert "which has no timers; wait until they are due" in refused
        assert operator.json("copy")["copied"] == 400
        (moved,) = operator.json("offsets", "-g", "billing")
        assert sum(queue["again"] for queue in moved["queues"]) == 0
        verdicts = operator.json("verify")
        assert [each for each in verdicts if each["source_digest"] != each["target_digest"]] == []
        assert sum(each["copies"] for each in verdicts) == 400
        assert sum(each["duplicates"] + each["missing"] for each in verdicts) == 0
    with Group(java.address, fails=False) as after:
        wait_for(lambda: len(after.got) >= 100, "the rest, on the Java broker", 100.0)
    assert Counter(after.got) == Counter(b"%d" % number for number in range(300, 400))


@pytest.mark.line("5.x")
def test_a_group_moves_to_a_java_cluster_with_its_retries_and_timers(
    java: JavaBroker, tmp_path: Path
) -> None:
    with Cluster(brokers=2, in_process=False) as source:
        operator = Operator(source.address, java.address, tmp_path / "state")
        source.create_topic("orders", queues=2)
        with mq.Admin(source.address) as admin:
            admin.groups.create(GroupConfig(group_name="billing", retry_max_times=7))
        send(source.address, range(300))
        send(source.address, range(300, 302), tag="bad")
        with Group(source.address, fails=True) as before:
            wait_for(lambda: len(before.got) == 300 and before.failed == 2, "the group at work")
        send(source.address, range(302, 400))
        with mq.Producer(source.address, group="shop") as producer:
            producer.send(mq.Message("orders", b"timed"), deliver_at=time.time() + 25.0)
        outlook = operator.json("plan")
        assert outlook["plan"]["problems"] == []
        assert outlook["waiting"]["messages"] == 3
        done = operator.json("copy", "--move-delayed")
        assert (done["copied"], done["moved_delayed"], done["lost"]) == (400, 3, 0)
        (moved,) = operator.json("offsets", "-g", "billing")
        assert sum(queue["again"] for queue in moved["queues"]) == 0
        verdicts = operator.json("verify")
        assert [each for each in verdicts if each["source_digest"] != each["target_digest"]] == []
        assert sum(each["copies"] for each in verdicts) == 400
        assert sum(each["duplicates"] + each["missing"] for each in verdicts) == 0
        with mq.Admin(java.address) as admin:
            (config,) = admin.groups.config("billing").values()
            assert config.retry_max_times == 7
    with Group(java.address, fails=False) as after:
        expected = [b"%d" % number for number in range(300, 400)] + [b"timed"]
        wait_for(lambda: len(after.got) >= 101, "the rest, on the Java broker", 100.0)
    assert Counter(after.got) == Counter(expected)
