"""The broker's figures as families of Prometheus, under the names and labels of RocketMQ 5.x.

What Java measures and this broker does not have (thread pools, buffers) is left out, never
shown as 0. Reads the broker's tables, so it runs on the broker's loop; `families` yields None
wherever the caller may let the loop run, since a broker with many groups takes a while to
collect, and `collected` does so for the exporters.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from prometheus_client.metrics_core import Metric

from pocketmq.broker.metrics.exposition import Labels, Value, expose, family, measured_families
from pocketmq.broker.state import BrokerState
from pocketmq.broker.statistics.counters import Pair
from pocketmq.broker.statistics.requests import earliest_time
from pocketmq.model import ConsumeType
from pocketmq.model.names import is_retry_topic, is_system_group
from pocketmq.protocol.peers import Language, version_name

_WHERE = {"storage_medium": "disk", "storage_type": "local"}
_BOUNDS = (5, 60, 300, 900, 3600, 14_400, 28_800, 86_400)
"""Seconds ahead by which Java counts messages that wait."""
_SAMPLES = 500
"""Samples of one family after which the loop may run: about 1 ms."""
_SLICE = 0.01
"""Seconds of work after which the loop runs other tasks."""
_MODES = {ConsumeType.CONSUME_ACTIVELY: "pull", ConsumeType.CONSUME_PASSIVELY: "push"}

Figures: TypeAlias = tuple[str, str, str, Iterable[Value]]
"""Type, name, description and values, without the labels of the node."""


def metrics_text(state: BrokerState) -> str:
    """Return all figures in Prometheus' text format."""
    return expose(each for each in families(state) if each is not None).decode()


def families(state: BrokerState) -> Iterator[Metric | None]:
    """Yield all families, and None where the caller may let the loop run."""
    node = {
        "cluster": state.config.broker_cluster_name,
        "node_id": state.config.broker_name,
        "node_type": "broker",
    }
    for figures in _figures(state):
        if figures is None:
            yield None
            continue
        kind, name, about, values = figures
        made = family(kind, name, about)
        for count, (labels, value) in enumerate(values, 1):
            made.add_sample(name, node | labels, value)
            if count % _SAMPLES == 0:
                yield None
        yield made
    if state.measures is not None:
        yield from measured_families(
            state.measures, node, lambda topic: _topic_labels(state, topic)
        )


def _figures(state: BrokerState) -> Iterator[Figures | None]:
    yield from _counters(state)
    yield from _clients(state)
    yield from _progress(state)
    yield from _store(state)
    yield from _waiting(state)


def _counters(state: BrokerState) -> Iterator[Figures]:
    stats = state.stats
    put = [(_topic_labels(state, topic), flow) for topic, flow in stats.stored.items()]
    got = [(_group_labels(state, pair), flow) for pair, flow in stats.given.items()]
    about = "Total number of incoming messages"
    yield "counter", "rocketmq_messages_in_total", about, [(at, flow.messages) for at, flow in put]
    about = "Total traffic of incoming messages"
    yield "counter", "rocketmq_throughput_in_total", about, [(at, flow.size) for at, flow in put]
    about = "Total number of outgoing messages"
    yield "counter", "rocketmq_messages_out_total", about, [(at, flow.messages) for at, flow in got]
    about = "Total traffic of outgoing messages"
    yield "counter", "rocketmq_throughput_out_total", about, [(at, flow.size) for at, flow in got]
    about = "Consumer send to DLQ messages"
    dead = [(_group_labels(state, pair), flow.messages) for pair, flow in stats.dead.items()]
    yield "counter", "rocketmq_send_to_dlq_messages_total", about, dead


def _clients(state: BrokerState) -> Iterator[Figures]:
    config = state.config
    yield (
        "gauge",
        "rocketmq_broker_permission",
        "Broker permission",
        [({}, config.broker_permission)],
    )
    yield "gauge", "rocketmq_topic_number", "Active topic number", [({}, len(state.topics))]
    about = "Active subscription group number"
    yield "gauge", "rocketmq_consumer_group_number", about, [({}, len(state.groups))]
    producers = Counter(
        (_language(member.client.language), member.client.version)
        for members in state.producers.groups.values()
        for member in members.values()
    )
    yield (
        "gauge",
        "rocketmq_producer_connections",
        "Producer connections",
        [(_client(*key), count) for key, count in producers.items()],
    )
    yield "gauge", "rocketmq_consumer_connections", "Consumer connections", _consumers(state)


def _consumers(state: BrokerState) -> list[Value]:
    values: list[Value] = []
    for name, group in state.consumers.groups.items():
        members = Counter(
            (_language(member.client.language), member.client.version)
            for member in group.members.values()
        )
        for key, count in members.items():
            labels = _client(*key) | {
                "consumer_group": name,
                "consume_mode": _MODES.get(group.consume_type, "pop"),
                "is_system": _flag(is_system_group(name)),
            }
            values.append((labels, count))
    return values


def _client(language: str, version: int) -> Labels:
    return {
        "language": language,
        "version": version_name(version).lower(),
        "protocol_type": "remoting",
    }


def _progress(state: BrokerState) -> Iterator[Figures | None]:
    """Yield how far behind groups are: in messages, and in the age of the oldest one."""
    now_ms = state.clock.now_ms()
    lag: list[Value] = []
    latency: list[Value] = []
    in_flight: list[Value] = []
    queueing: list[Value] = []
    ready: list[Value] = []
    for (topic, group), committed in list(state.offsets.committed.items()):
        yield None
        if topic not in state.topics:
            continue
        labels = _group_labels(state, (topic, group))
        labels["is_retry"] = _flag(is_retry_topic(topic))
        behind = _Behind()
        for number, offset in committed.items():
            pulled = state.offsets.query_pull(group, topic, number)
            behind.add(state, topic, number, offset, max(offset, pulled or 0))
        lag.append((labels, behind.lag))
        latency.append((labels, _since(behind.first_ms, now_ms)))
        in_flight.append((labels, behind.lag - behind.ready))
        queueing.append((labels, _since(behind.first_unread_ms, now_ms)))
        ready.append((labels, behind.ready))
    yield "gauge", "rocketmq_consumer_lag_messages", "Consumer lag messages", lag
    yield "gauge", "rocketmq_consumer_lag_latency_milliseconds", "Consumer lag time", latency
    about = "Consumer inflight messages"
    yield "gauge", "rocketmq_consumer_inflight_messages", about, in_flight
    about = "Consumer queueing time"
    yield "gauge", "rocketmq_consumer_queueing_latency_milliseconds", about, queueing
    yield "gauge", "rocketmq_consumer_ready_messages", "Consumer ready messages", ready


class _Behind:
    """How far a group is behind in all queues of a topic."""

    def __init__(self) -> None:
        self.lag = 0
        self.ready = 0
        self.first_ms = 0  # store time of the oldest message that is not committed
        self.first_unread_ms = 0  # the same of those not even pulled

    def add(self, state: BrokerState, topic: str, number: int, offset: int, pulled: int) -> None:
        queue = state.store.queue(topic, number)
        if queue is None:
            return
        offset, pulled = max(offset, queue.min_offset), max(pulled, queue.min_offset)
        if offset < queue.next_offset:
            self.lag += queue.next_offset - offset
            self.first_ms = _earlier(self.first_ms, state.store.store_time(queue, offset))
        if pulled < queue.next_offset:
            self.ready += queue.next_offset - pulled
            stored_ms = state.store.store_time(queue, pulled)
            self.first_unread_ms = _earlier(self.first_unread_ms, stored_ms)


def _earlier(first_ms: int, time_ms: int) -> int:
    if time_ms <= 0:
        return first_ms
    return min(first_ms, time_ms) if first_ms else time_ms


def _since(time_ms: int, now_ms: int) -> int:
    return max(now_ms - time_ms, 0) if time_ms else 0


def _store(state: BrokerState) -> Iterator[Figures]:
    log = state.store.log
    size = sum(segment.end - segment.start for segment in log.segments)
    yield "gauge", "rocketmq_storage_size_bytes", "Broker storage size", [(_WHERE, size)]
    behind = log.tail - log.synced
    about = "Broker flush behind bytes"
    yield "gauge", "rocketmq_storage_flush_behind_bytes", about, [(_WHERE, behind)]
    about = "Broker dispatch behind bytes"
    yield "gauge", "rocketmq_storage_dispatch_behind_bytes", about, [(_WHERE, 0)]
    about = "Damaged records found since the start"
    damaged = [(_WHERE, len(log.damaged))]
    yield "counter", "pocketmq_storage_damaged_records_total", about, damaged
    earliest = earliest_time(state)
    if earliest > 0:
        kept = state.clock.now_ms() - earliest
        name = "rocketmq_storage_message_reserve_time_milliseconds"
        yield "gauge", name, "Broker message reserve time", [(_WHERE, kept)]


def _waiting(state: BrokerState) -> Iterator[Figures]:
    timed, now_ms = state.timed, state.clock.now_ms()
    if timed is not None:
        about = "Timer enqueue messages lag"
        yield "gauge", "rocketmq_timer_enqueue_lag", about, [(_WHERE, timed.not_taken)]
        about = "Timer enqueue latency"
        behind = timed.behind_ms(now_ms)
        yield "gauge", "rocketmq_timer_enqueue_latency_milliseconds", about, [(_WHERE, behind)]
        about = "Timer dequeue messages lag"
        yield "gauge", "rocketmq_timer_dequeue_lag", about, [(_WHERE, timed.wheel.due(now_ms))]
        about = "Timer message distribution snapshot, only count timing messages in 24h."
        ahead = timed.wheel.ahead(now_ms, _BOUNDS)
        spread = [
            (_WHERE | {"timer_bound_s": str(bound)}, count)
            for bound, count in zip(_BOUNDS, ahead, strict=True)
        ]
        yield "gauge", "rocketmq_timer_message_snapshot", about, spread
        about = "Timer dequeue latency"
        late = timed.late_ms(now_ms)
        yield "gauge", "rocketmq_timer_dequeue_latency_milliseconds", about, [(_WHERE, late)]
        about = "Current message number in timing"
        yield "gauge", "rocketmq_timing_messages", about, [(_WHERE, timed.wheel.count)]
    if state.halves is not None:
        about = "Half messages of all topics"
        yield "gauge", "rocketmq_half_messages", about, [({}, state.halves.open_count())]


def _topic_labels(state: BrokerState, topic: str) -> Labels:
    config = state.topics.get(topic)
    kind = "NORMAL" if config is None else config.attributes.get("message.type", "NORMAL")
    return {
        "topic": topic,
        "message_type": kind.lower(),
        "is_system": _flag(state.topics.is_system(topic)),
    }


def _group_labels(state: BrokerState, pair: Pair) -> Labels:
    topic, group = pair
    return {
        "topic": topic,
        "consumer_group": group,
        "is_system": _flag(state.topics.is_system(topic) or is_system_group(group)),
    }


def _language(language: Language | None) -> str:
    return "other" if language is None else language.name.lower()


def _flag(value: bool) -> str:  # noqa: FBT001 - a value to be shown
    return "true" if value else "false"


async def collected(state: BrokerState) -> list[Metric]:
    """Return all families. Runs on the broker's loop, and lets it run between pieces."""
    loop = asyncio.get_running_loop()
    found = []
    until = loop.time() + _SLICE
    for each in families(state):
        if each is not None:
            found.append(each)
        if loop.time() > until:
            await asyncio.sleep(0)
            until = loop.time() + _SLICE
    return found
