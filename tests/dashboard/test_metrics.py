"""Figures for Prometheus: names that boards know, and nothing that is not known."""

import asyncio

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from pocketmq import Cluster, Message, Producer, aio
from pocketmq.admin.brokers import status_of
from pocketmq.admin.gathered import ServerPlace
from pocketmq.admin.groups import GroupProgress
from pocketmq.admin.overview import Glance
from pocketmq.admin.sticky_story import StickyStory
from pocketmq.admin.topics import TopicStatus
from pocketmq.balance.story.totals import HandoverTotals, PauseHistogram
from pocketmq.dashboard.event_reader import EventReader
from pocketmq.dashboard.metrics import ClusterFigures, metrics_text
from pocketmq.dashboard.views import BrokerView, GroupsView, ProducersView, Views
from pocketmq.model import ConsumeType, MessageModel, MessageQueue
from pocketmq.model.group_balance import BalanceMode, QueueStage, stages_text
from pocketmq.model.rebalance_event import RebalanceChange
from pocketmq.protocol.peers import Language, version_number
from pocketmq.protocol.requests import client_calls, stats
from pocketmq.protocol.requests import groups as rows
from tests.balance.story.test_handed_over import A, B, gave, told, took
from tests.dashboard.spoken import PUSH, SpokenGroup

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
        MessageQueue("t", "b", 0): stats.QueueProgress(
            broker_offset=10, consumer_offset=4, pull_offset=6
        ),
        MessageQueue("t", "b", 1): stats.QueueProgress(
            broker_offset=5, consumer_offset=5, pull_offset=5
        ),
        MessageQueue("%RETRY%g", "b", 0): stats.QueueProgress(broker_offset=3, consumer_offset=0),
    }
    member = rows.ClientConnection(
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
    status = TopicStatus(
        {MessageQueue("t", "b", 0): stats.OffsetRange(max_offset=12_345_678)}, 0.0, ()
    )
    dead = TopicStatus({MessageQueue("%DLQ%g", "b", 0): stats.OffsetRange(max_offset=2)}, 0.0, ())
    info = rows.ProducerInfo(
        client_id="p", language=Language.PYTHON, version=version_number(4, 9, 7)
    )
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


def types(known: ClusterFigures) -> dict[str, str]:
    families = text_string_to_metric_families(metrics_text(known).decode())
    return {family.name: family.type for family in families}


def every(known: ClusterFigures) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(metrics_text(known).decode())
    return {key(each.name, **each.labels): each.value for f in families for each in f.samples}


def test_the_mode_of_a_group_is_told_by_its_members_ids() -> None:
    def glance(group: str, *ids: str) -> Glance:
        members = tuple(rows.ClientConnection(client_id=each, version=1) for each in ids)
        return Glance(group=group, members=members)

    groups = [
        glance("s", "a@1@pm1", "a@2@pm1"), glance("m", "a@1@pm1", "b@1"), glance("j", "b@1"),
        glance("empty"),
    ]  # fmt: skip
    found = samples(known(groups=GroupsView(groups, ())))
    name = "pocketmq_group_balance_mode"
    for group, mode in (("s", "sticky"), ("m", "mixed"), ("j", "java")):
        assert found[key(name, consumer_group=group, mode=mode)] == 1
    assert sum(each[0] == name for each in found) == 3
    assert found[key("pocketmq_group_members", consumer_group="s", handover="true")] == 2
    assert found[key("pocketmq_group_members", consumer_group="m", handover="false")] == 1


def test_stages_and_moves_to_go_of_groups_with_hand_over() -> None:
    story = StickyStory(
        mode=BalanceMode.STICKY, foreign=(), foreign_strategy=None, reasons={}, moves=3, unowned=0,
        stages={"fenced": 2, "filling hole": 1},
    )  # fmt: skip
    found = samples(known(balances={"g": story}))
    name = "pocketmq_group_queue_stage"
    assert found[key(name, consumer_group="g", stage="fenced")] == 2
    assert found[key(name, consumer_group="g", stage="filling_hole")] == 1
    assert found[key(name, consumer_group="g", stage="draining")] == 0
    assert found[key("pocketmq_group_moves_to_go", consumer_group="g")] == 3
    unknown = msgspec.structs.replace(story, moves=None)
    assert key("pocketmq_group_moves_to_go", consumer_group="g") not in samples(
        known(balances={"g": unknown})
    )


def test_hand_overs_are_counters_and_a_histogram() -> None:
    pauses = PauseHistogram().with_pause(0.02).with_pause(0.004).with_pause(100.0)
    totals = HandoverTotals(
        {("g", "overlap"): 3, ("g", "lost"): 1}, {"g": pauses}, {"g": 0.25}
    )  # fmt: skip
    figures = known(handovers=totals)
    assert types(figures) == {
        "pocketmq_handovers": "counter",
        "pocketmq_handover_seconds": "histogram",
        "pocketmq_handover_two_owners_seconds": "counter",
    }
    found = every(figures)
    assert found[key("pocketmq_handovers_total", consumer_group="g", kind="overlap")] == 3
    assert found[key("pocketmq_handovers_total", consumer_group="g", kind="lost")] == 1
    name = "pocketmq_handover_seconds"
    for bound, number in (("0.005", 1), ("0.01", 1), ("0.025", 2), ("60.0", 2), ("+Inf", 3)):
        assert found[key(f"{name}_bucket", consumer_group="g", le=bound)] == number
    assert found[key(f"{name}_count", consumer_group="g")] == 3
    assert found[key(f"{name}_sum", consumer_group="g")] == 100.024
    assert found[key("pocketmq_handover_two_owners_seconds_total", consumer_group="g")] == 0.25


async def _totals(cluster: Cluster, publish: list[Message]) -> list[HandoverTotals]:
    async with (
        aio.Admin(cluster.address) as admin,
        aio.Producer(cluster.address, group="p", send_timeout=30.0) as producer,
    ):
        reader = EventReader(admin, "rebalances")
        before = await reader.read()
        for message in publish:
            await producer.send(message)
        return [before, await reader.read(), await reader.read()]


def test_what_members_publish_is_read_once_and_only_what_is_new() -> None:
    with Cluster() as cluster:
        cluster.create_topic("rebalances", queues=2)
        with Producer(cluster.address, group="p", send_timeout=30.0) as producer:
            producer.send(Message("rebalances", told(B, took()).to_json()))
        change = RebalanceChange(follows=1.0, event=told(A, gave()))
        events = [
            b"nonsense",
            b"[" * 100_000,
            told(B, took()).to_json() + b"\n\n" + msgspec.json.encode(change),
            b"x" * (1 << 20),
        ]
        messages = [Message("rebalances", body) for body in events]
        before, now, later = asyncio.run(_totals(cluster, messages))
    assert before.kinds == {}
    assert now.kinds == {("shop", "overlap"): 1}
    assert sum(now.pauses["shop"].buckets) == 1
    assert later == now


def test_a_group_with_hand_over_is_scraped_from_its_members() -> None:
    with Cluster() as cluster:
        cluster.create_topic("orders", queues=2)
        queues = [MessageQueue("orders", broker, n) for broker in cluster.brokers for n in (0, 1)]
        stages = stages_text({queues[0]: QueueStage.FENCED})
        told_ = PUSH | {
            client_calls.PROP_BALANCE_MODE: "sticky",
            client_calls.PROP_BALANCE_STAGES: stages,
        }
        addresses = [broker.address for broker in cluster.brokers.values()]
        with (
            SpokenGroup("billing", ["orders"], addresses) as group,
            SpokenGroup("plain", ["orders"], addresses) as plain,
        ):
            group.join("10.0.0.1@1@pm1", queues, told_)
            plain.join("10.0.0.1@2", queues)

            async def scraped() -> dict[str, StickyStory]:
                async with aio.Admin(cluster.address) as admin:
                    views = Views(admin)
                    found: dict[str, StickyStory] = {}
                    async with asyncio.timeout(60):
                        while not found:  # its heartbeat may still be on its way
                            found = await views._balances()
                    await views.close()
                    return found

            found = asyncio.run(scraped())
    assert list(found) == ["billing"]
    assert (found["billing"].stages, found["billing"].moves) == ({"fenced": 1}, 0)
