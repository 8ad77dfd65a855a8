"""Routes: which queues they publish, in which order, and how far a hostile one gets."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import BodyMalformed
from pocketmq.model import BrokerData, MessageQueue, QueueData, TopicRoute
from pocketmq.model.route import MAX_ROUTE_QUEUES
from pocketmq.model.topics import TopicMapping
from tests.balance.producer.vectors import TOPIC, named, rows

READ, WRITE = 4, 2


def broker(name: str, *ids: int) -> BrokerData:
    return BrokerData(
        broker_name=name, broker_addrs={i: f"{name}:{10911 + i}" for i in ids or (0,)}
    )


def queues(name: str, write: int, read: int | None = None, perm: int = READ | WRITE) -> QueueData:
    reads = write if read is None else read
    return QueueData(broker_name=name, write_queue_nums=write, read_queue_nums=reads, perm=perm)


def published(route: TopicRoute) -> list[tuple[str, int]]:
    return [(q.broker_name, q.queue_id) for q in route.publish_queues(TOPIC)]


def test_published_queues_are_those_java_publishes_in_its_order() -> None:
    refused = 0
    for row in rows("route"):
        route = msgspec.convert(row["route"], TopicRoute, strict=False)
        if isinstance(row["publish"], str):  # the name of a Java exception
            refused += 1
            with pytest.raises(BodyMalformed):
                route.publish_queues(TOPIC)
        else:
            assert [named(q) for q in route.publish_queues(TOPIC)] == row["publish"], row
    assert refused >= 10


def test_brokers_go_by_name_whatever_order_they_came_in() -> None:
    route = TopicRoute(
        queue_datas=[queues("b", 2), queues("a", 1), queues("B", 1)],
        broker_datas=[broker("b"), broker("B"), broker("a")],
    )
    assert published(route) == [("B", 0), ("a", 0), ("b", 0), ("b", 1)]


@pytest.mark.parametrize(
    ("data", "brokers", "expected"),
    [
        (queues("a", 2), [broker("a", 0)], [("a", 0), ("a", 1)]),
        (queues("a", 2), [broker("a", 1)], []),  # no master
        (queues("a", 2), [], []),  # unknown broker
        (queues("a", 2), [broker("a", 1), broker("a", 0)], []),  # the first of a name counts
        (queues("a", 2, perm=READ), [broker("a")], []),
        (queues("a", 2, perm=WRITE), [broker("a")], [("a", 0), ("a", 1)]),
        (queues("a", 0), [broker("a")], []),
        (queues("a", -3), [broker("a")], []),
    ],
)
def test_only_writable_queues_of_a_registered_master_are_published(
    data: QueueData, brokers: list[BrokerData], expected: list[tuple[str, int]]
) -> None:
    assert published(TopicRoute(queue_datas=[data], broker_datas=brokers)) == expected


def test_consumers_share_readable_queues_without_a_master_too() -> None:
    route = TopicRoute(
        queue_datas=[queues("a", write=0, read=2), queues("b", 2, perm=WRITE)],
        broker_datas=[broker("a", 1)],
    )
    assert route.subscribe_queues(TOPIC) == {
        MessageQueue(TOPIC, "a", 0),
        MessageQueue(TOPIC, "a", 1),
    }


def test_an_order_configuration_wins_over_permissions_and_masters() -> None:
    route = TopicRoute(order_topic_conf="z:1;a:2", queue_datas=[queues("b", 4)])
    assert published(route) == [("z", 0), ("a", 0), ("a", 1)]


@pytest.mark.parametrize(
    "text", ["a", "a:", "a:x", "a:1;;b:1", "a: 1", "a:2147483648", ":", "a:1_0"]
)
def test_an_order_configuration_that_does_not_parse_is_refused(text: str) -> None:
    with pytest.raises(BodyMalformed, match="malformed topic route: order configuration"):
        TopicRoute(order_topic_conf=text).publish_queues(TOPIC)


def test_a_huge_number_in_an_order_configuration_costs_nothing() -> None:
    with pytest.raises(BodyMalformed):
        TopicRoute(order_topic_conf="a:" + "9" * 1_000_000).publish_queues(TOPIC)


@pytest.mark.parametrize(
    "route",
    [
        TopicRoute(queue_datas=[queues("a", 2**31 - 1)], broker_datas=[broker("a")]),
        TopicRoute(queue_datas=[queues("a", 40_000)] * 2, broker_datas=[broker("a")]),
        TopicRoute(order_topic_conf="a:2147483647"),
    ],
)
def test_a_route_with_absurdly_many_queues_is_refused_before_they_are_made(
    route: TopicRoute,
) -> None:
    with pytest.raises(BodyMalformed, match="exceed the limit of 65536"):
        route.publish_queues(TOPIC)


def test_reading_is_bounded_as_writing_is() -> None:
    route = TopicRoute(queue_datas=[queues("a", 0, read=2**31 - 1)])
    with pytest.raises(BodyMalformed, match="2147483647 queues of topic 'T' exceed the limit"):
        route.subscribe_queues(TOPIC)


def test_the_largest_accepted_route_is_accepted() -> None:
    route = TopicRoute(queue_datas=[queues("a", MAX_ROUTE_QUEUES)], broker_datas=[broker("a")])
    assert len(route.publish_queues(TOPIC)) == MAX_ROUTE_QUEUES


@pytest.mark.parametrize(
    ("template_reads", "wanted", "count"), [(8, 4, 4), (8, 16, 8), (3, 4, 3), (0, 4, 0)]
)
def test_a_new_topic_gets_no_more_queues_than_the_template_may_be_read_from(
    template_reads: int, wanted: int, count: int
) -> None:
    template = TopicRoute(
        queue_datas=[queues("a", write=8, read=template_reads, perm=7)], broker_datas=[broker("a")]
    )
    (data,) = template.for_new_topic(wanted).queue_datas
    assert (data.read_queue_nums, data.write_queue_nums, data.perm) == (count, count, 7)
    assert template.queue_datas[0].write_queue_nums == 8  # the template itself is untouched


def test_a_hostile_template_gives_at_most_the_wanted_queues() -> None:
    template = TopicRoute(
        queue_datas=[queues("a", 2**31 - 1)], broker_datas=[broker("a")]
    ).for_new_topic()
    assert published(template) == [("a", 0), ("a", 1), ("a", 2), ("a", 3)]


ROUTE = TopicRoute(
    queue_datas=[queues("a", 2), queues("b", 2)], broker_datas=[broker("a"), broker("b")]
)


def changed(**changes: object) -> TopicRoute:
    return msgspec.structs.replace(ROUTE, **changes)


@pytest.mark.parametrize(
    ("new", "old", "differs"),
    [
        (ROUTE, None, True),
        (ROUTE, ROUTE, False),
        (changed(queue_datas=ROUTE.queue_datas[::-1]), ROUTE, False),
        (changed(broker_datas=ROUTE.broker_datas[::-1]), ROUTE, False),
        (changed(broker_datas=[broker("a", 0, 1), broker("b")]), ROUTE, True),
        (changed(queue_datas=[queues("a", 2), queues("b", 3)]), ROUTE, True),
        (changed(queue_datas=[queues("a", 2), queues("b", 2, perm=READ)]), ROUTE, True),
        (changed(order_topic_conf="a:1"), ROUTE, True),
        (changed(filter_server_table={"a": ["127.0.0.1:1"]}), ROUTE, True),
        (changed(topic_queue_mapping_by_broker={"a": TopicMapping(epoch=1)}), ROUTE, True),
        (changed(extra={"unknown": 1}), ROUTE, False),
    ],
)
def test_a_route_differs_only_in_what_sending_and_receiving_depend_on(
    new: TopicRoute, old: TopicRoute | None, differs: bool
) -> None:
    assert new.differs_from(old) is differs


names = st.sampled_from(["a", "b", "Z", "ä", "😀"])
datas = st.builds(queues, names, st.integers(-1, 5), st.integers(-1, 5), st.integers(0, 15))
routes = st.builds(
    lambda queue_datas, broker_datas: TopicRoute(
        queue_datas=queue_datas, broker_datas=broker_datas
    ),
    st.lists(datas, max_size=6),
    st.lists(st.builds(broker, names, st.integers(0, 1)), max_size=6),
)


@given(routes)
def test_every_published_queue_is_declared_writable_and_has_a_master(route: TopicRoute) -> None:
    for queue in route.publish_queues(TOPIC):
        assert any(
            data.broker_name == queue.broker_name
            and data.perm & WRITE
            and queue.queue_id < data.write_queue_nums
            for data in route.queue_datas
        )
        assert any(b.broker_name == queue.broker_name and b.master() for b in route.broker_datas)


@given(routes)
def test_a_route_never_differs_from_its_own_shuffle(route: TopicRoute) -> None:
    by_name = {data.broker_name: data for data in route.queue_datas}
    one_each = msgspec.structs.replace(route, queue_datas=list(by_name.values()))
    turned = msgspec.structs.replace(one_each, queue_datas=one_each.queue_datas[::-1])
    assert not turned.differs_from(one_each)
