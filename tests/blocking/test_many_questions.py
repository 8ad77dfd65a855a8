"""Many queues asked together: the same answers, and an error for each that has none."""

from collections.abc import Iterator

import pytest

from pocketmq import Admin, Cluster, Message, MessageQueue, Producer
from pocketmq.blocking.many_questions import TOGETHER
from pocketmq.blocking.record_reader import Bounds, RecordReader
from pocketmq.client.options import ClientOptions
from pocketmq.errors import ClientClosed, MQError, TransportError

MANY = TOGETHER + 72


@pytest.fixture(scope="module")
def two() -> Iterator[Cluster]:
    with Cluster(brokers=2) as running:
        running.create_topic("orders", queues=MANY)
        yield running


@pytest.fixture
def reader(two: Cluster) -> Iterator[RecordReader]:
    options = ClientOptions(name_servers=two.address, request_timeout=30.0)
    with RecordReader(options, patience=0.0) as made:
        yield made


def test_all_queues_answer_as_one_by_one(two: Cluster, reader: RecordReader) -> None:
    queues = reader.queues("orders")
    last = MessageQueue("orders", "broker-1", MANY - 1)
    with Producer(two.address, group="tests", send_timeout=30.0) as producer:
        for _ in range(3):
            producer.send(Message("orders", b"x"), queue=last)
    ends = reader.ends(queues)
    assert list(ends) == queues
    assert ends == {queue: 3 if queue == last else 0 for queue in queues}
    assert reader.all_bounds(queues)[last] == Bounds(0, 3)
    times = reader.first_times(queues)
    assert times[queues[0]] == -1
    assert isinstance(times[last], int)
    assert reader.first_messages([last]) == {last: (0, times[last])}
    assert reader.offsets_at({last: 5, queues[0]: 5}) == {last: 0, queues[0]: 0}
    reader.introduce("g", ["orders"])
    reader.commit("g", last, 2)
    assert reader.all_committed("g", [*queues[:1], last]) == {queues[0]: None, last: 2}
    assert reader.ends([]) == {}


def test_errors_stand_beside_results(reader: RecordReader) -> None:
    here = MessageQueue("orders", "broker-0", 0)
    unknown = MessageQueue("orders", "broker-9", 0)
    strange = MessageQueue("no-such-topic", "broker-0", 5)
    found = reader.ends([unknown, here, strange])
    assert isinstance(found[unknown], MQError)
    assert "broker-9" in str(found[unknown])
    assert found[here] in (0, 3)


def test_brokers_that_left_are_remembered_and_do_not_hide_the_others() -> None:
    with Cluster(brokers=2) as two:
        two.create_topic("orders", queues=2)
        options = ClientOptions(name_servers=two.address, request_timeout=30.0)
        with RecordReader(options, patience=0.0) as reader:
            queues = reader.queues("orders")
            assert (reader.departed("orders"), reader.departed_topics()) == ([], [])
            reader.ends(queues)
            two.kill("broker-0")
            found = reader.ends(queues)
            assert [isinstance(found[queue], TransportError) for queue in queues] == [
                True,
                True,
                False,
                False,
            ]
            assert reader.departed("orders") == queues[:2]
            assert reader.departed("no-such-topic") == []
            assert "orders" in reader.departed_topics()
            two.restart("broker-0")
            assert reader.departed("orders") == []
            assert reader.ends(queues[2:]) == dict.fromkeys(queues[2:], 0)
        with pytest.raises(ClientClosed):
            reader.ends(queues)


def test_the_order_of_a_topic_names_brokers_on_any_name_server(reader: RecordReader) -> None:
    with Admin(reader.options.name_servers) as admin:
        admin.name_servers.change_config({"orderMessageEnable": "true"})
        admin.name_servers.put("ORDER_TOPIC_CONFIG", "orders", "broker-1:1;broker-7:2")
    assert reader.departed("orders") == [
        MessageQueue("orders", "broker-7", number) for number in range(2)
    ]
