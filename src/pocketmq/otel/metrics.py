"""Metrics of sends and handler calls, with the names of the messaging semantic conventions."""

import time
from collections.abc import Callable

from opentelemetry import metrics
from opentelemetry.metrics import Meter, MeterProvider

from pocketmq.client.interceptors import HandlerCall, SendCall
from pocketmq.client.push.wrapping import outcome
from pocketmq.otel import conventions as names

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Seconds; the buckets that the conventions ask for."""


def open_meter(provider: MeterProvider | None) -> Meter:
    """Return the meter of our instruments."""
    return metrics.get_meter(names.SCOPE, meter_provider=provider)


class SendMetrics:
    """An interceptor of producers: durations, messages, and calls in flight."""

    def __init__(self, provider: MeterProvider | None = None) -> None:
        meter = open_meter(provider)
        self._duration = meter.create_histogram(
            "messaging.client.operation.duration",
            unit="s",
            description="Duration of a send, with all its tries.",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )
        self._sent = meter.create_counter(
            "messaging.client.sent.messages",
            unit="{message}",
            description="Messages that a producer attempted to send.",
        )
        self._in_flight = meter.create_up_down_counter(
            "pocketmq.client.sends_in_flight",
            unit="{send}",
            description="Sends that have begun and not ended.",
        )

    def __call__(self, call: SendCall) -> Callable[[SendCall], object]:
        """Note the start of a send; return what notes its end."""
        attributes = names.operation("send", "send", call.message.topic)
        count, started = len(call.messages), time.perf_counter()
        self._in_flight.add(1, attributes)

        def end(call: SendCall) -> None:
            self._in_flight.add(-1, attributes)
            ended = dict(attributes)
            if call.error is not None:
                ended[names.ERROR_TYPE] = names.error_type(call.error)
            self._duration.record(time.perf_counter() - started, ended)
            self._sent.add(count, ended)

        return end


class HandlerMetrics:
    """An interceptor of push consumers: durations, messages, their age, and calls in flight."""

    def __init__(self, provider: MeterProvider | None = None) -> None:
        meter = open_meter(provider)
        self._duration = meter.create_histogram(
            "messaging.process.duration",
            unit="s",
            description="Duration of a handler call.",
            explicit_bucket_boundaries_advisory=_BOUNDS,
        )
        self._consumed = consumed_counter(meter)
        self._age = meter.create_histogram(
            "pocketmq.client.message_age",
            unit="s",
            description="Time from storing a message to the start of its handler.",
            explicit_bucket_boundaries_advisory=(*_BOUNDS, 30.0, 60.0, 300.0, 3600.0),
        )
        self._in_flight = meter.create_up_down_counter(
            "pocketmq.client.handlers_in_flight",
            unit="{call}",
            description="Handler calls that have begun and not ended.",
        )

    def __call__(self, call: HandlerCall) -> Callable[[HandlerCall], object]:
        """Note the start of a handler call; return what notes its end."""
        attributes = names.operation("process", "process", call.topic)
        attributes[names.CONSUMER_GROUP] = call.group
        count, started, now = len(call.messages), time.perf_counter(), time.time()
        self._in_flight.add(1, attributes)
        for message in call.messages:
            self._age.record(max(0.0, now - message.store_timestamp), attributes)

        def end(call: HandlerCall) -> None:
            self._in_flight.add(-1, attributes)
            ended = attributes | {names.OUTCOME: outcome(call.result, call.error)}
            if ended[names.OUTCOME] == "error" and call.error is not None:
                ended[names.ERROR_TYPE] = names.error_type(call.error)
            self._duration.record(time.perf_counter() - started, ended)
            self._consumed.add(count, ended)

        return end


def consumed_counter(meter: Meter) -> metrics.Counter:
    """Return the counter of messages that were handed to the application."""
    return meter.create_counter(
        "messaging.client.consumed.messages",
        unit="{message}",
        description="Messages that were delivered to the application.",
    )
