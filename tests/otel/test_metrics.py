"""Metrics of clients on a real cluster, read with OpenTelemetry's own SDK."""

import threading
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import pocketmq as mq
from pocketmq import Cluster, Message, otel
from pocketmq.errors import ClientClosed

WAIT = 20.0


def points(reader: InMemoryMetricReader) -> dict[tuple[str, str, str], Any]:
    """Data points by the metric's name, the outcome and the error's type."""
    found: dict[tuple[str, str, str], Any] = {}
    data = reader.get_metrics_data()
    assert data is not None
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.data.data_points:
            labels = point.attributes or {}
            outcome, error = labels.get("pocketmq.outcome", ""), labels.get("error.type", "")
            found[metric.name, str(outcome), str(error)] = point
            assert labels["messaging.system"] == "rocketmq"
            assert labels["messaging.destination.name"] == "orders"
    return found


def test_sends_and_handler_calls_are_counted_and_timed() -> None:
    reader, done = InMemoryMetricReader(), threading.Semaphore(0)
    meters = MeterProvider(metric_readers=[reader])

    def handle(message: mq.ReceivedMessage) -> None:
        if not message.reconsume_times:  # one may come again before the others have come at all
            done.release()
        if message.body == b"poison":
            raise ValueError("no price")
        if message.body == b"later":
            raise mq.RetryLater(1)

    with Cluster() as cluster:
        consumer = mq.PushConsumer(
            cluster.address,
            group="billing",
            consume_from="first",
            profile="4.x",
            interceptors=otel.handler_interceptors(meter_provider=meters),
        ).subscribe("orders", "*", handle)
        producer = mq.Producer(
            cluster.address,
            group="shop",
            interceptors=otel.send_interceptors(meter_provider=meters),
            send_timeout=30.0,
        )
        with pytest.raises(ClientClosed):
            producer.send(Message("orders", b"too early"))
        with producer:
            producer.send_batch([Message("orders", b"1"), Message("orders", b"2")])
            producer.send(Message("orders", b"poison"))
            producer.send(Message("orders", b"later"))
        with consumer:
            for _ in range(4):
                assert done.acquire(timeout=WAIT)
    found = points(reader)
    closed = "pocketmq.errors.usage.ClientClosed"
    assert found["messaging.client.sent.messages", "", ""].value == 4
    assert found["messaging.client.sent.messages", "", closed].value == 1
    assert found["messaging.client.operation.duration", "", ""].count == 3
    assert found["messaging.client.operation.duration", "", ""].sum > 0
    assert found["pocketmq.client.sends_in_flight", "", ""].value == 0
    assert found["pocketmq.client.handlers_in_flight", "", ""].value == 0
    consumed = "messaging.client.consumed.messages"
    assert found[consumed, "ok", ""].value >= 2
    assert found[consumed, "error", "ValueError"].value >= 1
    assert found[consumed, "retry", ""].value >= 1
    assert found["messaging.process.duration", "ok", ""].count >= 2
    age = found["pocketmq.client.message_age", "", ""]
    assert age.count >= 4
    assert 0 <= age.max < WAIT
    labels = found[consumed, "ok", ""].attributes
    assert labels["messaging.consumer.group.name"] == "billing"
