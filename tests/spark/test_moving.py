"""A move that broke off is completed: each row once, whatever the broker still holds of it."""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StringType, StructType

from pocketmq import Admin, Cluster
from pocketmq.blocking.fenced import FencedConnection
from pocketmq.errors import BatchIncomplete, RouteNotFound
from pocketmq.model import MessageQueue
from pocketmq.protocol.batch import decode_batch, encode_batch
from pocketmq.spark import moving
from pocketmq.spark.batch_reader import batch_reader
from pocketmq.spark.connections import forget_senders
from pocketmq.spark.exactly_once import ExactlyOnceWriter
from pocketmq.spark.ledger import BatchDecision
from pocketmq.spark.moving import BatchMove
from pocketmq.spark.options import STAGING
from pocketmq.spark.schema import full_schema
from pocketmq.spark.sink_options import sink_plan
from tests.spark.topics import rows

QUERY = "3d3e8b4e-0000-4000-8000-0123456789ab"
SCHEMA = StructType().add("body", StringType())
BODIES = [f"{number:03}" for number in range(40)]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Yield a cluster of one test, whose broker stores at once what it reads."""
    monkeypatch.setattr(moving, "SETTLE", 0.2)
    with Cluster(data=tmp_path / "data") as running:
        yield running
        forget_senders()


class Striking(BatchMove):
    """A move that is struck at its third batch."""

    def __init__(
        self, move: BatchMove, strike: Callable[[FencedConnection, MessageQueue, bytes], None]
    ):
        self.__dict__ = move.__dict__
        self.strike = strike
        self.count = 0

    def deliver(self, connection: FencedConnection, queue: MessageQueue, body: bytes) -> None:
        self.count += 1
        if self.count == 3:
            self.strike(connection, queue, body)
        super().deliver(connection, queue, body)


class Gone(BaseException):
    """What ends a process."""


def writer_to(address: str, topic: str, ledger: Path, **more: str) -> ExactlyOnceWriter:
    options = {"nameServer": address, "topic": topic, "exactlyOnce": "true"}
    options |= {"ledger": str(ledger), "requestTimeout": "30s", "retryTimeout": "20s", **more}
    plan = sink_plan(options, SCHEMA, overwrite=False, stream=True)
    assert plan.exactly_once is not None
    return ExactlyOnceWriter(plan, plan.exactly_once)


def struck(
    writer: ExactlyOnceWriter, strike: Callable[[FencedConnection, MessageQueue, bytes], None]
) -> ExactlyOnceWriter:
    """Return a writer whose first move is struck."""
    original = writer.move

    def move(query: str, batch: int, decision: BatchDecision) -> BatchMove:
        return Striking(original(query, batch, decision), strike)

    writer.move = move  # type: ignore[method-assign]
    return writer


def staged(writer: ExactlyOnceWriter) -> list[WriterCommitMessage | None]:
    batch = pa.record_batch([pa.array(BODIES)], names=["body"])
    return [writer.prepare(writer._sender(), QUERY, 0, iter([batch]), 0)]


def visible(cluster: Cluster, topic: str) -> Counter[str]:
    reader = batch_reader({"nameServer": cluster.address, "subscribe": topic}, full_schema())
    return Counter(row["body"].decode() for row in rows(reader, reader.partitions()))


def test_a_broker_that_is_killed_amid_the_move_gets_the_rest(
    cluster: Cluster, tmp_path: Path
) -> None:
    """By the same process, which reads what is there as soon as the broker is back."""
    topic = cluster.create_topic("killed", 4)
    back: list[threading.Thread] = []

    def kill(connection: FencedConnection, queue: MessageQueue, body: bytes) -> None:
        connection.begin(queue, body)
        cluster.kill("broker-0")
        back.append(threading.Thread(target=cluster.restart, args=("broker-0",)))
        back[0].start()

    writer = struck(writer_to(cluster.address, topic, tmp_path / "ledger"), kill)
    writer.commit(staged(writer), 0)
    back[0].join()
    assert visible(cluster, topic) == Counter(BODIES)


class Relay:
    """Passes the bytes of one connection on to a broker, while its gate is open."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.gate = threading.Event()
        self.gate.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._upstream = socket.create_connection((host, int(port)))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self._run, daemon=True)  # of a test that may fail
        self.thread.start()

    def _run(self) -> None:
        client, _ = self._listener.accept()
        with self._listener, self._upstream, client:
            answers = threading.Thread(target=self._pump, args=(self._upstream, client))
            answers.start()
            while data := client.recv(65_536):
                self.gate.wait()
                self._upstream.sendall(data)
            self.gate.wait()
            self._upstream.shutdown(socket.SHUT_WR)
            answers.join()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # its end is gone
            while data := source.recv(65_536):
                target.sendall(data)


def test_a_request_that_the_broker_has_not_read_yet_counts(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sender is dead, and its successor asks first: it must wait, not send the rows again."""
    topic = cluster.create_topic("held-back", 4)
    relay = Relay(cluster.brokers["broker-0"].address)
    writer = writer_to(cluster.address, topic, tmp_path / "ledger")
    prepared = staged(writer)

    def die(_: FencedConnection, queue: MessageQueue, body: bytes) -> None:
        group = f"pocketmq-spark-sink-{QUERY}"
        held = FencedConnection(relay.address, writer.plan.reach.client(), group=group)
        relay.gate.clear()
        held.begin(queue, body)
        held.close()
        raise Gone

    with pytest.raises(Gone):
        struck(writer, die).commit(prepared, 0)
    assert 0 < sum(visible(cluster, topic).values()) < len(BODIES)
    asked: list[list[str]] = []
    others = FencedConnection.others

    def asking(connection: FencedConnection) -> list[str]:
        asked.append(others(connection))
        if len(asked) == 3:
            relay.gate.set()
        return asked[-1]

    monkeypatch.setattr(FencedConnection, "others", asking)
    writer_to(cluster.address, topic, tmp_path / "ledger").commit(prepared, 0)
    relay.gate.set()
    relay.thread.join()
    assert visible(cluster, topic) == Counter(BODIES)
    assert [len(each) for each in asked][:3] == [1, 1, 1]


def test_of_a_batch_that_is_there_in_part_the_rest_is_sent(
    cluster: Cluster, tmp_path: Path
) -> None:
    """A crash of the broker's machine may truncate its log in the middle of a batch."""
    topic = cluster.create_topic("torn", 4)

    def tear(connection: FencedConnection, queue: MessageQueue, body: bytes) -> None:
        connection.send_packed(queue, encode_batch(decode_batch(body)[:3]))
        raise Gone

    writer = writer_to(cluster.address, topic, tmp_path / "ledger")
    prepared = staged(writer)
    with pytest.raises(Gone):
        struck(writer, tear).commit(prepared, 0)
    writer_to(cluster.address, topic, tmp_path / "ledger").commit(prepared, 0)
    assert visible(cluster, topic) == Counter(BODIES)


def test_a_predecessor_that_is_alive_is_named(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = cluster.create_topic("alive", 4)
    left: list[FencedConnection] = []

    def leave(connection: FencedConnection, queue: MessageQueue, body: bytes) -> None:
        raise Gone

    writer = writer_to(cluster.address, topic, tmp_path / "ledger")
    prepared = staged(writer)
    with pytest.raises(Gone):
        struck(writer, leave).commit(prepared, 0)
    decided = writer_to(cluster.address, topic, tmp_path / "ledger", retryTimeout="500ms")
    address = cluster.brokers["broker-0"].address
    group = f"pocketmq-spark-sink-{QUERY}"
    left.append(FencedConnection(address, decided.plan.reach.client(), group=group))
    with monkeypatch.context() as patch:
        patch.setattr(moving, "LOST_AFTER", 0.5)
        with pytest.raises(BatchIncomplete, match=f"{left[0].name}.*is still connected"):
            decided.commit(prepared, 0)
    left[0].close()  # the broker may take a while to notice
    writer_to(cluster.address, topic, tmp_path / "ledger").commit(prepared, 0)
    assert visible(cluster, topic) == Counter(BODIES)


def test_rows_that_were_staged_and_are_gone_are_named(cluster: Cluster, tmp_path: Path) -> None:
    topic = cluster.create_topic("gone", 4)
    prepared = staged(writer_to(cluster.address, topic, tmp_path / "ledger"))
    with Admin(cluster.address) as admin:
        admin.topics.delete(STAGING, "DefaultCluster")
    hasty = writer_to(cluster.address, topic, tmp_path / "ledger", retryTimeout="500ms")
    with pytest.raises(BatchIncomplete, match=f"staging topic '{STAGING}' on broker 'broker-0'"):
        hasty.commit(prepared, 0)
    assert visible(cluster, topic) == Counter()


def test_topics_are_created_where_brokers_may(cluster: Cluster, tmp_path: Path) -> None:
    """The target where producers may, as without exactlyOnce; the staging topic by any driver."""
    writer = writer_to(cluster.address, "new", tmp_path / "ledger")
    writer.commit(staged(writer), 0)
    assert visible(cluster, "new") == Counter(BODIES)
    with Cluster(config={"autoCreateTopicEnable": False}) as strict:
        writer = writer_to(strict.address, strict.create_topic("old", 2), tmp_path / "other")
        writer.commit(staged(writer), 0)
        assert visible(strict, "old") == Counter(BODIES)
        prepared = staged(writer_to(strict.address, "unknown", tmp_path / "third"))
        unknown = writer_to(strict.address, "unknown", tmp_path / "third", retryTimeout="100ms")
        with pytest.raises(RouteNotFound, match="unknown"):
            unknown.commit(prepared, 0)
        forget_senders()
