"""Metrics of sends and handler calls, and of the queues of consumers.

Instruments are the library's own, so that they are exported with those of the application.
Labels are the group and the topic, as the application calls them, and the outcome. What is
known of the queues that push consumers own is read at scrape time.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol
from weakref import WeakSet

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.group.parts import QueueLag
from pocketmq.client.interceptors import HandlerCall, SendCall
from pocketmq.client.push.wrapping import outcome
from pocketmq.model import MessageQueue

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_AGES = (0.01, 0.1, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21_600.0, 86_400.0)
_PLACE = ("group", "topic")


class SendInstruments:
    """An interceptor of producers that counts and times sends."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sent = Counter(
            "pocketmq_sent_messages",
            "Messages of sends that ended, by outcome.",
            (*_PLACE, "outcome"),
            registry=registry,
        )
        self._duration = Histogram(
            "pocketmq_send_duration_seconds",
            "Duration of sends, each with all its tries.",
            _PLACE,
            buckets=_SECONDS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "pocketmq_sends_in_flight",
            "Sends that have begun and not ended.",
            _PLACE,
            registry=registry,
        )

    def __call__(self, call: SendCall) -> Callable[[SendCall], object]:
        """Note the start of a send; return what notes its end."""
        place = call.group, call.message.topic
        count, in_flight = len(call.messages), self._in_flight.labels(*place)
        in_flight.inc()
        started = time.perf_counter()

        def end(call: SendCall) -> None:
            self._duration.labels(*place).observe(time.perf_counter() - started)
            in_flight.dec()
            self._sent.labels(*place, "ok" if call.error is None else "error").inc(count)

        return end


class HandlerInstruments:
    """An interceptor of push consumers that counts and times handler calls."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._handled = Counter(
            "pocketmq_handled_messages",
            "Messages of handler calls that ended: ok, retry (requested) or error.",
            (*_PLACE, "outcome"),
            registry=registry,
        )
        self._retried = Counter(
            "pocketmq_retried_messages",
            "Messages handed to a handler that had failed before.",
            _PLACE,
            registry=registry,
        )
        self._duration = Histogram(
            "pocketmq_handler_duration_seconds",
            "Duration of handler calls.",
            _PLACE,
            buckets=_SECONDS,
            registry=registry,
        )
        self._age = Histogram(
            "pocketmq_message_age_seconds",
            "Time from storing a message to the start of its handler.",
            _PLACE,
            buckets=_AGES,
            registry=registry,
        )
        self._in_flight = Gauge(
            "pocketmq_handlers_in_flight",
            "Handler calls that have begun and not ended.",
            _PLACE,
            registry=registry,
        )

    def __call__(self, call: HandlerCall) -> Callable[[HandlerCall], object]:
        """Note the start of a handler call; return what notes its end."""
        place = call.group, call.topic
        in_flight, age = self._in_flight.labels(*place), self._age.labels(*place)
        in_flight.inc()
        now = time.time()
        for message in call.messages:
            age.observe(max(0.0, now - message.store_timestamp))
        retried = sum(message.reconsume_times > 0 for message in call.messages)
        if retried:
            self._retried.labels(*place).inc(retried)
        started = time.perf_counter()

        def end(call: HandlerCall) -> None:
            self._duration.labels(*place).observe(time.perf_counter() - started)
            in_flight.dec()
            ended = outcome(call.result, call.error)
            self._handled.labels(*place, ended).inc(len(call.messages))

        return end


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


class ClientMetrics:
    """The metrics of all clients of a program, in one registry. Make one per registry."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.sends = SendInstruments(registry)
        """The interceptor of producers."""
        self.handlers = HandlerInstruments(registry)
        """The interceptor of push consumers."""
        self._queues = QueueMetrics(registry)

    def watch(self, consumer: WatchedConsumer) -> None:
        """Export the queues of a push consumer: their lag, their number, and how they changed."""
        self._queues.watch(consumer)
