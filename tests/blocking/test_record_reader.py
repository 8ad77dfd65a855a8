"""Raw records by offset, on a cluster of this process."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pocketmq import Cluster, Message, MessageQueue, Producer, by_sql, by_tags, errors
from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.blocking.record_reader import Bounds, RecordReader
from pocketmq.client.options import ClientOptions, Credentials
from pocketmq.embedded.settings import Setting
from pocketmq.protocol import DeliveryContext
from pocketmq.protocol.pulled import decode_pulled
from tests.net.certificates import make_certificates


def options_for(cluster: Cluster, **more: Any) -> ClientOptions:
    """Return options with time for servers that are without a processor for a few seconds."""
    return ClientOptions(name_servers=cluster.address, request_timeout=30.0, **more)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    return cluster.create_topic(f"t-{abs(hash(request.node.nodeid))}", queues=2)


@pytest.fixture
def reader(cluster: Cluster) -> Iterator[RecordReader]:
    with RecordReader(options_for(cluster), patience=0.0) as made:
        yield made


def send(cluster: Cluster, queue: MessageQueue, count: int, tag: str = "") -> None:
    with Producer(cluster.address, group="p", send_timeout=30.0) as producer:
        for number in range(count):
            body = str(number).encode()
            properties = {"n": str(number)}
            message = Message(queue.topic, body, tag=tag or None, properties=properties)
            producer.send(message, queue=queue)


def bodies(records: bytes) -> list[bytes]:
    return [message.body for message in decode_pulled(records, DeliveryContext())]


def test_queues_are_told_with_what_they_hold(
    cluster: Cluster, reader: RecordReader, topic: str
) -> None:
    queues = reader.queues(topic)
    assert queues == [MessageQueue(topic, "broker-0", 0), MessageQueue(topic, "broker-0", 1)]
    assert reader.bounds(queues[1]) == Bounds(0, 0)
    send(cluster, queues[1], 3)
    assert reader.bounds(queues[1]) == Bounds(0, 3)
    assert reader.end(queues[1]) == 3
    assert topic in reader.topics()


def test_a_pull_gives_records_as_they_are_stored(
    cluster: Cluster, reader: RecordReader, topic: str
) -> None:
    queue = reader.queues(topic)[0]
    send(cluster, queue, 100)
    pulled = reader.pull(queue, 40, max_messages=50)
    assert pulled.status is PullStatus.FOUND
    assert bodies(pulled.records) == [str(n).encode() for n in range(40, 90)]
    assert (pulled.next_offset, pulled.offset_delta) == (90, 0)
    assert (pulled.min_offset, pulled.max_offset) == (0, 100)


def test_filters_are_the_brokers(cluster: Cluster, reader: RecordReader, topic: str) -> None:
    queue = reader.queues(topic)[0]
    send(cluster, queue, 4, tag="a")
    send(cluster, queue, 4, tag="b")
    assert len(bodies(reader.pull(queue, 0, wanted=by_tags("b")).records)) == 4
    few = reader.pull(queue, 0, wanted=by_sql("n > 2"))
    assert bodies(few.records) == [b"3", b"3"]
    none = reader.pull(queue, 0, wanted=by_tags("c"))
    assert (none.status, none.records, none.next_offset) == (PullStatus.NO_MATCHED_MSG, b"", 8)


def test_a_pull_outside_of_the_queue_says_where_the_queue_is(
    cluster: Cluster, reader: RecordReader, topic: str
) -> None:
    queue = reader.queues(topic)[0]
    send(cluster, queue, 2)
    assert reader.pull(queue, 2).status is PullStatus.NO_NEW_MSG
    beyond = reader.pull(queue, 77)
    assert beyond.status is PullStatus.OFFSET_ILLEGAL
    assert (beyond.min_offset, beyond.max_offset) == (0, 2)


def test_offsets_are_found_by_time(cluster: Cluster, reader: RecordReader, topic: str) -> None:
    queue = reader.queues(topic)[0]
    before = int(time.time() * 1000)
    send(cluster, queue, 2)
    assert reader.offset_at(queue, before - 1000) == 0
    assert reader.offset_at(queue, before + 600_000) == 2


def test_progress_is_kept_by_the_broker_of_a_group_it_was_told_of(
    reader: RecordReader, topic: str
) -> None:
    """The retry topic, by which tools find a group, is made as by a member's first heartbeat."""
    queue = reader.queues(topic)[0]
    with pytest.raises(errors.ServerError, match="not exist"):
        reader.commit("unheard-of", queue, 7)
    reader.introduce("heard-of", [topic])
    assert "%RETRY%heard-of" in reader.topics()
    assert reader.committed("heard-of", queue) is None
    reader.commit("heard-of", queue, 7)
    assert reader.committed("heard-of", queue) == 7
    reader.introduce("heard-of", [topic])


def test_what_nobody_knows_is_said(cluster: Cluster, reader: RecordReader, topic: str) -> None:
    with pytest.raises(errors.RouteNotFound, match="no-such-topic"):
        reader.queues("no-such-topic")
    with pytest.raises(errors.ServerError, match="illegal"):
        reader.pull(MessageQueue(topic, "broker-0", 99), 0)
    with pytest.raises(errors.MQError, match="broker-9"):
        reader.pull(MessageQueue(topic, "broker-9", 0), 0)
    nowhere = RecordReader(ClientOptions(name_servers="127.0.0.1:1"), patience=0.0)
    with pytest.raises(errors.NameServersUnreachable, match=r"127\.0\.0\.1:1"):
        nowhere.topics()


def test_the_next_name_server_is_asked_if_one_does_not_answer(cluster: Cluster, topic: str) -> None:
    servers = f"127.0.0.1:1;{cluster.address}"
    options = ClientOptions(name_servers=servers, request_timeout=30.0)
    with RecordReader(options, patience=0.0) as reader:
        for _ in range(3):
            assert len(reader.queues(topic)) == 2


def test_a_broker_that_restarts_is_waited_for() -> None:
    with Cluster() as cluster:
        cluster.create_topic("orders", 1)
        queue = MessageQueue("orders", "broker-0", 0)
        options = options_for(cluster)
        with (
            RecordReader(options, patience=0.0) as hasty,
            RecordReader(options, patience=30.0) as patient,
        ):
            assert hasty.end(queue) == patient.end(queue) == 0
            cluster.kill("broker-0")
            with pytest.raises(errors.MQError) as caught:
                hasty.end(queue)
            assert isinstance(caught.value, errors.ConnectFailed) or caught.value.retryable
            cluster.restart("broker-0")
            assert patient.end(queue) == 0


def test_after_close_nothing_is_asked(cluster: Cluster, topic: str) -> None:
    reader = RecordReader(options_for(cluster))
    queue = reader.queues(topic)[0]
    reader.close()
    with pytest.raises(errors.ClientClosed):
        reader.end(queue)


def test_requests_are_signed(tmp_path: Path) -> None:
    config: dict[str, Setting] = {
        "authenticationEnabled": True,
        "initAuthenticationUser": '{"username":"root","password":"secret"}',
    }
    queue = MessageQueue("orders", "broker-0", 0)
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", 1)
        known = Credentials(access_key="root", secret_key="secret")
        options = options_for(cluster, credentials=known)
        with RecordReader(options, patience=0.0) as reader:
            assert reader.bounds(queue) == Bounds(0, 0)
            reader.introduce("g", ["orders"])
        with (
            RecordReader(options_for(cluster), patience=0.0) as nobody,
            pytest.raises(errors.ServerError, match="username"),
        ):
            nobody.bounds(queue)


def test_tls_is_spoken_to_name_servers_and_brokers(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    config: dict[str, Setting] = {
        "tls.server.mode": "enforcing",
        "tls.server.certPath": made.server,
        "tls.server.keyPath": made.server_key,
    }
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", 1)
        options = options_for(cluster, tls=made.asking())
        with RecordReader(options, patience=0.0) as reader:
            (queue,) = reader.queues("orders")
            assert reader.pull(queue, 0).status is PullStatus.NO_NEW_MSG
            assert [reader.end(queue) for _ in range(3)] == [0, 0, 0]
        other = make_certificates(tmp_path / "other")
        strange = options_for(cluster, tls=other.asking())
        with (
            RecordReader(strange, patience=0.0) as reader,
            pytest.raises(errors.NameServersUnreachable),
        ):
            reader.queues("orders")


def test_names_are_those_inside_the_namespace(cluster: Cluster) -> None:
    cluster.create_topic("shop%orders", 1)
    inside = options_for(cluster, namespace="shop")
    with RecordReader(inside, patience=0.0) as reader:
        assert reader.queues("orders") == [MessageQueue("orders", "broker-0", 0)]
        assert reader.end(MessageQueue("orders", "broker-0", 0)) == 0
        assert "orders" in reader.topics()
