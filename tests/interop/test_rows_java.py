"""A Java name server with our broker, and ours with Java's: clients of both kinds at once."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.model import MessageQueue
from tests.interop.groups import Load, Member
from tests.interop.jvm import Jars, Process, wait_until
from tests.interop.rows import ROWS, Row

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

MIXED = ("java-ours", "ours-java")


class Stand:
    """A cluster of one broker, and the Java programs on it."""

    def __init__(self, jars: Jars, home: Path, stack: ExitStack, row: str) -> None:
        self.cluster = Row(jars, home, stack, ROWS[row], "broker-0")
        self.address = self.cluster.address
        self._jars = jars
        self._home = home
        self._stack = stack

    def reader(self, topic: str, *options: str) -> Member:
        """Start a Java consumer."""
        words = (self.address, f"java-readers-of-{topic}", topic, "reader", *options)
        command = self._jars.compiled(self._home, "Member", *words)
        return self._stack.enter_context(Member(command, self._home))

    def transacting(self, topic: str) -> Process:
        """Start a Java producer that does what it is told."""
        words = ("transacting", self.address, "java-shop", topic)
        command = self._jars.compiled(self._home, "Exchange", *words)
        return self._stack.enter_context(Process(command, self._home))

    def load(self, topic: str) -> Load:
        """Start a Java producer."""
        command = self._jars.compiled(self._home, "Load", self.address, topic, "5")
        return self._stack.enter_context(Load(command, self._home))


@pytest.fixture(scope="module", params=MIXED)
def stand(
    request: pytest.FixtureRequest, jars: Jars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stand]:
    with ExitStack() as stack:
        yield Stand(jars, tmp_path_factory.mktemp("rows"), stack, request.param)


def test_both_hear_both(stand: Stand) -> None:
    """Each kind of consumer gets what each kind of producer sends, in groups of their own."""
    stand.cluster.create_topic("heard", 4)
    reader, load = stand.reader("heard"), stand.load("heard")
    handled: list[str] = []
    ours: set[str] = set()
    consumer = mq.PushConsumer(stand.address, group="python-readers", consume_from="first")
    consumer.subscribe("heard", handler=lambda message: handled.append(message.body.decode()))
    with consumer, mq.Producer(stand.address, group="shop") as producer:
        for number in range(50):
            message = mq.Message("heard", b"ours %d" % number, tag="t", keys=[f"k{number}"])
            assert producer.send(message).ok
            ours.add(f"ours {number}")
        batch = [mq.Message("heard", b"batched %d" % number) for number in range(20)]
        assert producer.send_batch(batch).ok
        ours |= {f"batched {number}" for number in range(20)}
        wait_until(lambda: len(load.accepted) > 50, "messages of the Java producer")
        everything = load.stop() | ours
        wait_until(lambda: everything <= set(handled), "ours to hear all")
    wait_until(lambda: everything <= {body for _, body in reader.got}, "Java's to hear all")
    with mq.PullConsumer(stand.address, group="pullers", consume_from="first") as pulling:
        pulling.subscribe("heard")
        pulled: set[str] = set()
        while not everything <= pulled:
            pulled.add(next(pulling).body.decode())
    assert pulled == everything


def test_what_is_committed_delayed_and_tagged_arrives_at_both(stand: Stand) -> None:
    """Each kind sends it, and each kind selects by tags."""
    stand.cluster.create_topic("special", 4)
    reader = stand.reader("special", "orderly", "tags:kept || tagged")
    theirs = stand.transacting("special")
    handled: list[str] = []
    consumer = mq.PushConsumer(
        stand.address, group="special-readers", consume_from="first", orderly=True
    )
    consumer.subscribe(
        "special", "kept || tagged", handler=lambda message: handled.append(message.body.decode())
    )
    wanted = {"committed", "delayed", "commit theirs", "delayed theirs"}
    with consumer, mq.Producer(stand.address, group="shop") as producer:
        for body in (b"committed", b"rolled back"):
            message = mq.Message("special", body, tag="kept")
            assert producer.send_in_transaction(message, _decided).ok
        for order in ("commit theirs", "roll back theirs"):
            theirs.say(f"transact {order}")  # with the tag "tagged"
        wait_until(lambda: len(theirs.lines) == 3, "the ends of Java's transactions")
        assert [line.split()[1] for line in theirs.lines[1:]] == [
            "COMMIT_MESSAGE",
            "ROLLBACK_MESSAGE",
        ]
        producer.send(mq.Message("special", b"other", tag="other"))
        producer.send(mq.Message("special", b"delayed", tag="kept"), delay_level=1)
        theirs.say("delay delayed theirs")

        def at_both() -> bool:
            return wanted <= set(handled) and wanted <= {body for _, body in reader.got}

        wait_until(at_both, "both to have what is theirs")
        for queue in range(4):  # behind all that came, and what should not have come
            last = mq.Message("special", b"last %d" % queue, tag="kept")
            assert producer.send(last, queue=MessageQueue("special", "broker-0", queue)).ok
            wanted.add(f"last {queue}")
        wait_until(at_both, "both to have the last")
    assert sorted(handled) == sorted(wanted)
    assert sorted(body for _, body in reader.got) == sorted(wanted)


def _decided(message: mq.Message, _: str) -> mq.TransactionState:
    kept = message.body == b"committed"
    return mq.TransactionState.COMMIT if kept else mq.TransactionState.ROLLBACK


@pytest.mark.line("5.x")  # brokers of 4.x know no POP
def test_ours_pops_what_java_sends(stand: Stand) -> None:
    stand.cluster.create_topic("popped", 2)
    load = stand.load("popped")
    wait_until(lambda: len(load.accepted) > 20, "messages of the Java producer")
    accepted = load.stop()
    popped: set[str] = set()
    with mq.PopConsumer(stand.address, group="poppers", consume_from="first") as consumer:
        consumer.subscribe("popped")
        while not accepted <= popped:
            messages = consumer.receive(timeout=10)
            popped |= {message.body.decode() for message in messages}
            consumer.ack(messages)
        assert consumer.receive(timeout=0.2) == []
    assert popped == accepted
