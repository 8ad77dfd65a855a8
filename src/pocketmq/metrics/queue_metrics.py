"""Metrics of the queues that push consumers own; what is known of them is read at scrape time."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol
from weakref import WeakSet

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.group.lag import QueueLag
from pocketmq.model import MessageQueue


class WatchedConsumer(Protocol):
    """A push consumer, blocking or not."""

    @property
    def options(self) -> PushConsumerOptions:
        """Its options."""

    def lag(self) -> dict[MessageQueue, QueueLag]:
        """Return the lag of its queues; none if it is not running."""

    def on_assigned(self, listener: Callable[[Sequence[MessageQueue]], Any]) -> object:
        """Call a function with new queues."""

    def on_revoked(self, listener: Callable[[Sequence[MessageQueue]], Any]) -> object:
        """Call a function with lost queues."""


class QueueMetrics(Collector):
    """Collects the queues of consumers. A consumer that has been closed has none."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._consumers: WeakSet[WatchedConsumer] = WeakSet()
        self._assigned = Counter(
            "pocketmq_consumer_queues_assigned",
            "Queues that rebalances assigned to this member.",
            ("group",),
            registry=registry,
        )
        self._revoked = Counter(
            "pocketmq_consumer_queues_revoked",
            "Queues that rebalances, or its close, revoked from this member.",
            ("group",),
            registry=registry,
        )
        self._changes = Counter(
            "pocketmq_consumer_rebalances",
            "Rebalances that assigned or revoked queues.",
            ("group", "change"),
            registry=registry,
        )
        registry.register(self)

    def watch(self, consumer: WatchedConsumer) -> None:
        """Collect a consumer's queues from now on."""
        group = consumer.options.group
        self._consumers.add(consumer)

        def assigned(queues: Sequence[MessageQueue]) -> None:
            self._assigned.labels(group).inc(len(queues))
            self._changes.labels(group, "assigned").inc()

        def revoked(queues: Sequence[MessageQueue]) -> None:
            self._revoked.labels(group).inc(len(queues))
            self._changes.labels(group, "revoked").inc()

        consumer.on_assigned(assigned)
        consumer.on_revoked(revoked)

    def describe(self) -> Iterable[Metric]:
        """Return the families without samples; called when this is registered."""
        return self._families({})

    def collect(self) -> Iterable[Metric]:
        """Return the families of this scrape."""
        found: dict[tuple[str, str], tuple[int, int, int]] = {}
        for consumer in list(self._consumers):
            for queue, lag in consumer.lag().items():
                place = consumer.options.group, queue.topic
                queues, total, cached = found.get(place, (0, 0, 0))
                found[place] = queues + 1, total + lag.total, cached + lag.cached
        return self._families(found)

    def _families(self, found: dict[tuple[str, str], tuple[int, int, int]]) -> Iterable[Metric]:
        abouts = {
            "queues": "Queues that this process owns.",
            "lag_messages": "Messages of these queues not handled yet, as of their last pulls.",
            "cached_messages": "Messages that were pulled and are not handled yet.",
        }
        for at, (name, about) in enumerate(abouts.items()):
            made = GaugeMetricFamily(f"pocketmq_consumer_{name}", about, labels=("group", "topic"))
            for place, values in found.items():
                made.add_metric(place, values[at])
            yield made
