"""The cluster's figures for Prometheus, under names that existing Grafana boards use.

Names and labels are those of RocketMQ 5.x where a broker of 5.x has the figure, and those of
Apache's rocketmq-exporter, which queries a cluster from outside as we do. Hand-overs have names
of PocketMQ's own, since Apache has no such figures. A figure that a server did not report is
left out, never shown as 0; `pocketmq_broker_up` shows which brokers responded.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TypeAlias

import msgspec
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pocketmq.admin.overview import Glance
from pocketmq.admin.sticky_story import StickyStory
from pocketmq.admin.topics import TopicStatus
from pocketmq.balance.story.totals import BOUNDS, HandoverTotals
from pocketmq.dashboard.views import BrokerView, GroupsView, ProducersView
from pocketmq.model import BalanceMode, ConsumeType, QueueStage, handover_version
from pocketmq.model.names import DLQ_PREFIX, is_dead_letter_topic, is_retry_topic, is_system_topic
from pocketmq.protocol.peers import Language, version_name
from pocketmq.protocol.requests.stats import QueueProgress

Labels: TypeAlias = dict[str, str]
Value: TypeAlias = tuple[Labels, float]
Family: TypeAlias = tuple[str, str, Iterable[Value]]
"""Name, description and values of gauges."""

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_MODES = {
    ConsumeType.CONSUME_ACTIVELY: "pull",
    ConsumeType.CONSUME_PASSIVELY: "push",
    ConsumeType.CONSUME_POP: "pop",
}


class ClusterFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the text is made of; None where there was no response."""

    brokers: tuple[BrokerView, ...] | None
    groups: GroupsView | None
    producers: ProducersView | None
    figures: dict[str, TopicStatus | None] | None
    balances: dict[str, StickyStory] | None = None
    """Groups with hand-over."""
    handovers: HandoverTotals | None = None
    """What members published of their hand-overs."""


def metrics_text(known: ClusterFigures) -> bytes:
    """Write all figures in Prometheus' text format; pure, so it may run in a thread."""
    return generate_latest(_FigureFamilies(known))


class _FigureFamilies(Collector):
    """The figures as families of `prometheus-client`, without those that have no value."""

    def __init__(self, known: ClusterFigures) -> None:
        self._known = known

    def collect(self) -> Iterator[Metric]:
        known = self._known
        clusters = {view.place.broker: view.place.cluster for view in known.brokers or ()}
        groups = known.groups.groups if known.groups is not None else []
        for families in (
            _brokers(known.brokers or ()),
            _groups(groups, clusters),
            _producers(known.producers),
            _topics(known.figures or {}, clusters),
        ):
            for name, about, values in families:
                made = Metric(name, about, "gauge")
                for labels, value in values:
                    made.add_sample(name, labels, value)
                if made.samples:
                    yield made
        yield from handover_metrics(groups, known.balances, known.handovers)


def _brokers(brokers: Iterable[BrokerView]) -> Iterator[Family]:
    up: list[Value] = []
    put: list[Value] = []
    got: list[Value] = []
    full: list[Value] = []
    for view in brokers:
        place = view.place
        host = place.address.rpartition(":")[0]
        labels = {"cluster": place.cluster, "brokerIP": host, "broker": place.broker}
        own = {"cluster": place.cluster, "broker": place.broker, "address": place.address}
        up.append((own, float(view.status is not None)))
        if view.status is None:
            continue
        for values, figure in (
            (put, view.status.put_tps),
            (got, view.status.get_tps),
            (full, view.status.disk_ratio),
        ):
            if figure is not None:
                values.append((labels, figure))
    yield "pocketmq_broker_up", "Whether a broker has responded", up
    yield "rocketmq_broker_tps", "Messages received per second", put
    yield "rocketmq_broker_qps", "Messages delivered per second", got
    name = "rocketmq_brokeruntime_commitlog_disk_ratio"
    yield name, "Share of the disk in use", full


def _groups(groups: Iterable[Glance], clusters: dict[str, str]) -> Iterator[Family]:
    lag: list[Value] = []
    flight: list[Value] = []
    offsets: list[Value] = []
    diff: dict[str, list[Value]] = {"rocketmq_group_diff": [], "rocketmq_group_retrydiff": []}
    members: list[Value] = []
    for glance in groups:
        members += _members(glance)
        if glance.progress is None:
            continue
        for (topic, broker), parts in _by_broker(glance).items():
            labels = _group_labels(glance.group, topic, broker, clusters)
            lag.append((labels, sum(_behind(part) for part in parts)))
            flight.append(
                (labels, sum(max(0, part.pull_offset - part.consumer_offset) for part in parts))
            )
            place = {"cluster": clusters.get(broker, ""), "broker": broker, "topic": topic}
            total = sum(part.consumer_offset for part in parts)
            offsets.append((place | {"group": glance.group}, total))
        for name, value in _differences(glance):
            diff[name].append(value)
    yield "rocketmq_consumer_lag_messages", "Consumer lag messages", lag
    yield "rocketmq_consumer_inflight_messages", "Consumer inflight messages", flight
    yield "rocketmq_consumer_connections", "Consumer connections", members
    yield "rocketmq_consumer_offset", "Sum of committed offsets", offsets
    for name, values in diff.items():
        yield name, "Messages not consumed yet", values


def _by_broker(glance: Glance) -> dict[tuple[str, str], list[QueueProgress]]:
    found: dict[tuple[str, str], list[QueueProgress]] = {}
    if glance.progress is not None:
        for queue, part in glance.progress.queues.items():
            found.setdefault((queue.topic, queue.broker_name), []).append(part)
    return found


def _group_labels(group: str, topic: str, broker: str, clusters: dict[str, str]) -> Labels:
    return {
        "cluster": clusters.get(broker, ""),
        "node_id": broker,
        "node_type": "broker",
        "topic": topic,
        "consumer_group": group,
        "is_retry": _flag(is_retry_topic(topic)),
        "is_system": _flag(is_system_topic(topic)),
    }


def _behind(part: QueueProgress) -> int:
    return max(0, part.broker_offset - part.consumer_offset)


def _differences(glance: Glance) -> Iterator[tuple[str, Value]]:
    """Yield the lag in each topic as rocketmq-exporter does, retry topics separately."""
    if glance.progress is None or glance.members is None:
        return
    by_topic: Counter[str] = Counter()
    for queue, part in glance.progress.queues.items():
        by_topic[queue.topic] += _behind(part)
    model = "" if glance.model is None else glance.model.value
    for topic, behind in by_topic.items():
        labels = {
            "group": glance.group,
            "topic": topic,
            "countOfOnlineConsumers": str(len(glance.members)),
            "msgModel": model,
        }
        name = "rocketmq_group_retrydiff" if is_retry_topic(topic) else "rocketmq_group_diff"
        yield name, (labels, behind)


def _members(glance: Glance) -> Iterator[Value]:
    kinds = Counter((each.language, each.version) for each in glance.members or ())
    mode = _MODES.get(glance.type, "") if glance.type is not None else ""
    for (language, version), number in kinds.items():
        labels = _client(language, version)
        yield labels | {"consumer_group": glance.group, "consume_mode": mode}, number


def _producers(view: ProducersView | None) -> Iterator[Family]:
    if view is None or view.missing:
        return
    kinds = Counter((info.language, info.version) for _, info, _ in view.producers)
    values = [(_client(*kind), float(number)) for kind, number in kinds.items()]
    yield "rocketmq_producer_connections", "Producer connections", values


def _client(language: Language | None, version: int) -> Labels:
    return {
        "language": "other" if language is None else language.name.lower(),
        "version": version_name(version).lower(),
        "protocol_type": "remoting",
    }


def _topics(figures: dict[str, TopicStatus | None], clusters: dict[str, str]) -> Iterator[Family]:
    offsets, dead = [], []
    for topic, status in figures.items():
        if status is None:
            continue
        by_broker: Counter[str] = Counter()
        for queue, held in status.queues.items():
            by_broker[queue.broker_name] += held.max_offset
        for broker, total in by_broker.items():
            place = {"cluster": clusters.get(broker, ""), "broker": broker}
            if is_dead_letter_topic(topic):
                dead.append((place | {"group": topic.removeprefix(DLQ_PREFIX)}, total))
            else:
                offsets.append((place | {"topic": topic}, total))
    yield "rocketmq_producer_offset", "Sum of the next offsets of a topic", offsets
    yield "rocketmq_topic_dlq_offset", "Sum of the next offsets of dead letters", dead


def _flag(value: bool) -> str:  # noqa: FBT001 - a value to be shown
    return "true" if value else "false"


def handover_metrics(
    groups: Iterable[Glance],
    balances: Mapping[str, StickyStory] | None,
    totals: HandoverTotals | None,
) -> Iterator[Metric]:
    """Yield all families; those without a value are left out."""
    families = (*_modes(groups), *_balances(balances or {}), *_totals(totals))
    yield from (family for family in families if family.samples)


def _modes(groups: Iterable[Glance]) -> Iterator[Metric]:
    mode = Metric("pocketmq_group_balance_mode", "How members share queues, by their ids", "gauge")
    members = Metric("pocketmq_group_members", "Members that hand queues over, or not", "gauge")
    for glance in groups:
        if not glance.members:
            continue
        kinds = Counter([_hands_over(each.client_id) for each in glance.members])
        for hands_over, number in sorted(kinds.items()):
            labels = {"consumer_group": glance.group, "handover": str(hands_over).lower()}
            members.add_sample(members.name, labels, number)
        found = (
            BalanceMode.MIXED if len(kinds) > 1 else
            BalanceMode.STICKY if kinds[True] else BalanceMode.JAVA
        )  # fmt: skip
        mode.add_sample(mode.name, {"consumer_group": glance.group, "mode": found.value}, 1)
    yield mode
    yield members


def _hands_over(client_id: str | None) -> bool:
    return handover_version(client_id or "") is not None


def _balances(balances: Mapping[str, StickyStory]) -> Iterator[Metric]:
    stages = Metric("pocketmq_group_queue_stage", "Queues in a stage of a hand-over", "gauge")
    moves = Metric("pocketmq_group_moves_to_go", "Queues that still have to move", "gauge")
    for group, story in sorted(balances.items()):
        if story.moves is not None:
            moves.add_sample(moves.name, {"consumer_group": group}, story.moves)
        for stage in QueueStage:
            if stage is not QueueStage.RUNNING:
                labels = {"consumer_group": group, "stage": stage.value.replace(" ", "_")}
                stages.add_sample(stages.name, labels, story.stages.get(stage.value, 0))
    yield stages
    yield moves


def _totals(totals: HandoverTotals | None) -> Iterator[Metric]:
    if totals is None:
        return
    count = Metric("pocketmq_handovers", "Queues that members took, and locks lost", "counter")
    for (group, kind), number in sorted(totals.kinds.items()):
        labels = {"consumer_group": group, "kind": kind}
        count.add_sample("pocketmq_handovers_total", labels, number)
    yield count
    name = "pocketmq_handover_seconds"
    pauses = Metric(name, "Time without an owner of queues that were handed over", "histogram")
    for group, histogram in sorted(totals.pauses.items()):
        labels = {"consumer_group": group}
        sums = list(accumulate(histogram.buckets))
        for bound, number in zip((*map(str, BOUNDS), "+Inf"), sums, strict=True):
            pauses.add_sample(f"{name}_bucket", labels | {"le": bound}, number)
        pauses.add_sample(f"{name}_count", labels, sums[-1])
        pauses.add_sample(f"{name}_sum", labels, histogram.seconds)
    yield pauses
    two = Metric("pocketmq_handover_two_owners_seconds", "Time with two owners", "counter")
    for group, seconds in sorted(totals.two_owners.items()):
        two.add_sample(f"{two.name}_total", {"consumer_group": group}, seconds)
    yield two
