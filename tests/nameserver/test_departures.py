"""Brokers that have left, and the queues that topics had there."""

from pocketmq.model import QueueData
from pocketmq.nameserver import NameServerConfig
from pocketmq.nameserver.access_control import NeededRight, right_for
from pocketmq.nameserver.departures import KEPT, Departures
from pocketmq.nameserver.handlers.routes import delete_topic
from pocketmq.nameserver.handlers.settings import get
from pocketmq.nameserver.state import NameServerState
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.requests.key_values import DEPARTED_NAMESPACE
from tests.nameserver.shapes import broker, config, topics
from tests.nameserver.test_route_registry import table_with


def test_the_queues_of_a_broker_that_left_are_kept_until_it_is_back() -> None:
    table = table_with(broker("b"), broker("d"))
    assert table.departures.of("t", 0.0) is None
    table.unregister(broker("d").key, "d", 0)
    table.connection_lost("b-0:1")
    assert table.departures.of("t", 0.0) == "d:4;b:4"
    table.register(broker("d"), topics("u", "v"), "again", 1.0)  # it has lost a topic
    assert table.departures.of("t", 1.0) == "b:4"
    assert table.departures.of("u", 1.0) == "b:4"
    assert table.departures.of("u", 120.0) == "b:4"
    assert table.expire(121.0 + 1.0)
    assert table.departures.of("u", 122.0) == "b:4;d:4"


def test_a_master_that_left_its_slave_is_no_departure() -> None:
    table = table_with(broker("b", 0), broker("b", 1))
    table.unregister(broker("b", 0).key, "b", 0)
    assert table.departures.of("t", 0.0) is None
    assert table.routes.get("t") is not None


def test_topics_that_are_deleted_or_unreadable_are_not_missed() -> None:
    known = topics(config("t"), config("hidden", perm=2), config("none", queues=0), config("u"))
    table = table_with(broker("b"), known=known)
    table.connection_lost("b-0:1")
    for topic in ("hidden", "none", "never"):
        assert table.departures.of(topic, 0.0) is None
    table.departures.forget("t")
    assert table.departures.of("t", 0.0) is None
    assert table.departures.of("u", 0.0) == "b:4"
    table.departures.forget("u", "other")
    assert table.departures.of("u", 0.0) == "b:4"


def test_nothing_is_kept_for_ever_or_without_limit() -> None:
    table = table_with(broker("b"))
    table.connection_lost("b-0:1")
    assert table.departures.of("t", KEPT) == "b:4"
    assert table.departures.of("t", KEPT + 1) is None
    few = Departures(most=3)
    held = [(name, QueueData(broker_name="b", read_queue_nums=1, perm=6)) for name in "tuvw"]
    for name in "abc":
        few.leave(name, ["c"], held[:2], 0.0)
    assert few.of("t", 0.0) == "c:1"
    few.leave("c", ["c"], held[:1], 0.0)
    few.leave("d", ["c"], held[:2], 0.0)
    assert few.of("t", 0.0) == "c:1;d:1"
    few.leave("e", ["c"], held, 0.0)  # alone too many
    assert few.of("t", 0.0) == "c:1;d:1"


def asked(state: NameServerState, topic: str) -> str | None:
    fields = {"namespace": DEPARTED_NAMESPACE, "key": topic}
    request = Command.request(RequestCode.GET_KV_CONFIG, 1, fields)
    assert right_for(request) is NeededRight.READ
    return get(state, None, request).ext.get("value")


def deleted(state: NameServerState, topic: str, cluster: str = "") -> None:
    fields = {"topic": topic} | ({"clusterName": cluster} if cluster else {})
    delete_topic(state, None, Command.request(RequestCode.DELETE_TOPIC_IN_NAMESRV, 2, fields))


def test_clients_ask_for_it_like_any_value_and_deleting_a_topic_forgets_it() -> None:
    state = NameServerState(NameServerConfig(), clock=lambda: 5.0)
    state.table = table_with(broker("b"), broker("d", cluster="other"))
    state.table.connection_lost("b-0:1")
    assert asked(state, "t") == "b:4"
    deleted(state, "t")
    assert state.table.departures.of("t", 5.0) is None


def test_deleting_a_topic_in_one_cluster_forgets_it_on_brokers_of_that_cluster_alone() -> None:
    state = NameServerState(NameServerConfig(), clock=lambda: 5.0)
    state.table = table_with(broker("b"), broker("d", cluster="other"))
    for connection in ("b-0:1", "d-0:1"):
        state.table.connection_lost(connection)
    assert asked(state, "t") == "b:4;d:4"
    deleted(state, "t", "other")
    assert asked(state, "t") == "b:4"
    deleted(state, "t", "nowhere")
    assert asked(state, "t") == "b:4"
