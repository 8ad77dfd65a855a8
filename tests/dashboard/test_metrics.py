"""Figures for Prometheus: names that boards know, and nothing that is not known."""

from prometheus_client.parser import text_string_to_metric_families

from pocketmq.admin.brokers import status_of
from pocketmq.admin.gathered import ServerPlace
from pocketmq.admin.groups import GroupProgress
from pocketmq.admin.overview import Glance
from pocketmq.admin.topics import TopicStatus
from pocketmq.dashboard.metrics import ClusterFigures, metrics_text
from pocketmq.dashboard.views import BrokerView, GroupsView, ProducersView
from pocketmq.model.kinds import ConsumeType, MessageModel
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.peers import Language, version_number
from pocketmq.protocol.requests.groups import ClientConnection, ProducerInfo
from pocketmq.protocol.requests.stats import OffsetRange, QueueProgress

PLACE = ServerPlace("c", "b", 0, "10.0.0.1:10911")
NOTHING = ClusterFigures(brokers=None, groups=None, producers=None, figures=None)


def samples(known: ClusterFigures) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return the values by name and labels, as Prometheus reads the text."""
    families = list(text_string_to_metric_families(metrics_text(known).decode()))
    assert {each.type for each in families} <= {"gauge"}
    return {key(each.name, **each.labels): each.value for f in families for each in f.samples}


def key(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted(labels.items()))


def known(**parts: object) -> ClusterFigures:
    nothing = {"brokers": None, "groups": None, "producers": None, "figures": None}
    return ClusterFigures(**(nothing | parts))  # type: ignore[arg-type]


def test_what_is_not_known_is_left_out() -> None:
    assert metrics_text(NOTHING) == b""
    glance = Glance(group="g", members=None)
    assert samples(known(groups=GroupsView([glance], ()))) == {}
    assert samples(known(producers=ProducersView([], ("b: refused",)))) == {}
    assert samples(known(figures={"t": None})) == {}


def test_a_silent_broker_is_down_and_has_no_figures() -> None:
    assert samples(known(brokers=(BrokerView(PLACE, None, "refused"),))) == {
        key("pocketmq_broker_up", cluster="c", broker="b", address="10.0.0.1:10911"): 0
    }


def test_a_broker_has_the_names_of_the_exporter() -> None:
    status = status_of({"putTps": "2.5 1 1", "commitLogDiskRatio": "0.25"})
    labels = {"cluster": "c", "brokerIP": "10.0.0.1", "broker": "b"}
    assert samples(known(brokers=(BrokerView(PLACE, status),))) == {
        key("pocketmq_broker_up", cluster="c", broker="b", address="10.0.0.1:10911"): 1,
        key("rocketmq_broker_tps", **labels): 2.5,
        key("rocketmq_brokeruntime_commitlog_disk_ratio", **labels): 0.25,
    }


def test_groups_have_the_names_of_5x_and_of_the_exporter() -> None:
    queues = {
        MessageQueue("t", "b", 0): QueueProgress(
            broker_offset=10, consumer_offset=4, pull_offset=6
        ),
        MessageQueue("t", "b", 1): QueueProgress(broker_offset=5, consumer_offset=5, pull_offset=5),
        MessageQueue("%RETRY%g", "b", 0): QueueProgress(broker_offset=3, consumer_offset=0),
    }
    member = ClientConnection(
        client_id="m", language=Language.JAVA, version=version_number(5, 5, 0)
    )
    glance = Glance(
        group="g", members=(member,), type=ConsumeType.CONSUME_PASSIVELY,
        model=MessageModel.CLUSTERING, progress=GroupProgress(queues, 0.0),
    )  # fmt: skip
    found = samples(known(groups=GroupsView([glance], ()), brokers=(BrokerView(PLACE, None),)))
    node = {"cluster": "c", "node_id": "b", "node_type": "broker", "topic": "t"}
    node |= {"consumer_group": "g", "is_retry": "false", "is_system": "false"}
    assert found[key("rocketmq_consumer_lag_messages", **node)] == 6
    assert found[key("rocketmq_consumer_inflight_messages", **node)] == 2
    rest = {"group": "g", "countOfOnlineConsumers": "1", "msgModel": "CLUSTERING"}
    assert found[key("rocketmq_group_diff", topic="t", **rest)] == 6
    assert found[key("rocketmq_group_retrydiff", topic="%RETRY%g", **rest)] == 3
    java = {"language": "java", "version": "v5_5_0", "protocol_type": "remoting"}
    members = key("rocketmq_consumer_connections", consumer_group="g", consume_mode="push", **java)
    assert found[members] == 1
    place = {"cluster": "c", "broker": "b", "topic": "t", "group": "g"}
    assert found[key("rocketmq_consumer_offset", **place)] == 9


def test_topics_and_dead_letters_and_producers_are_counted() -> None:
    status = TopicStatus({MessageQueue("t", "b", 0): OffsetRange(max_offset=12_345_678)}, 0.0, ())
    dead = TopicStatus({MessageQueue("%DLQ%g", "b", 0): OffsetRange(max_offset=2)}, 0.0, ())
    info = ProducerInfo(client_id="p", language=Language.PYTHON, version=version_number(4, 9, 7))
    found = samples(
        known(
            figures={"t": status, "%DLQ%g": dead},
            producers=ProducersView([("shop", info, ("b",))], ()),
        )
    )
    python = {"language": "python", "version": "v4_9_7", "protocol_type": "remoting"}
    assert found == {
        key("rocketmq_producer_offset", cluster="", broker="b", topic="t"): 12_345_678,
        key("rocketmq_topic_dlq_offset", cluster="", broker="b", group="g"): 2,
        key("rocketmq_producer_connections", **python): 1,
    }


def test_names_cannot_break_a_line() -> None:
    place = ServerPlace('c"\n', "b\\", 0, "a:1")
    text = metrics_text(known(brokers=(BrokerView(place, None),))).decode()
    assert (
        text.splitlines()[2]
        == r'pocketmq_broker_up{address="a:1",broker="b\\",cluster="c\"\n"} 0.0'
    )
