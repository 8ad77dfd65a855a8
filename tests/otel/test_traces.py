"""Traces of a producer and its consumers on a real cluster, with OpenTelemetry's own SDK."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import pocketmq as mq
from pocketmq import Cluster, Message, aio, otel
from pocketmq.client.push.wrapping import intercepted
from pocketmq.embedded.aio import Cluster as AsyncCluster
from pocketmq.errors import QueueNotSelected
from tests.server_process import wait_for

WAIT = 20.0
JAVA = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
"""A context as OpenTelemetry's agent for Java writes it into the user properties of a message."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


class Traces:
    """A provider, and the spans it has exported."""

    def __init__(self) -> None:
        self.provider = TracerProvider()
        self._memory = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._memory))
        self.tracer = self.provider.get_tracer("tests")

    def spans(self) -> dict[str, list[ReadableSpan]]:
        found: dict[str, list[ReadableSpan]] = {}
        for span in self._memory.get_finished_spans():
            found.setdefault(span.name, []).append(span)
        return found

    def producer(self, cluster: Cluster, group: str = "shop", **settings: Any) -> mq.Producer:
        interceptors = otel.send_interceptors(self.provider)
        return mq.Producer(
            cluster.address, group=group, interceptors=interceptors, **settings, send_timeout=30.0
        )

    def consumer(self, cluster: Cluster, group: str, **settings: Any) -> mq.PushConsumer:
        return mq.PushConsumer(
            cluster.address,
            group=group,
            consume_from="first",
            profile="4.x",
            interceptors=otel.handler_interceptors(self.provider),
            **settings,
        )


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_trace_goes_from_the_caller_through_the_message_into_the_handler(
    cluster: Cluster,
) -> None:
    traces, handled = Traces(), threading.Event()
    inside: list[tuple[int, object]] = []

    def handle(message: mq.ReceivedMessage) -> None:
        with traces.tracer.start_as_current_span("charge"):
            inside.append((trace.get_current_span().get_span_context().trace_id,
                           baggage.get_baggage("tenant")))  # fmt: skip
        handled.set()

    consumer = traces.consumer(cluster, "billing").subscribe("orders", "*", handle)
    with traces.producer(cluster) as producer, consumer:
        with traces.tracer.start_as_current_span("checkout"):
            token = context.attach(baggage.set_baggage("tenant", "acme"))
            receipt = producer.send(Message("orders", b"42 EUR", tag="paid", keys=["A17", "B2"]))
            context.detach(token)
        assert handled.wait(WAIT)
    spans = traces.spans()
    (checkout,), (send,), (process,), (charge,) = (
        spans[name] for name in ("checkout", "send orders", "process orders", "charge")
    )
    assert send.parent is not None
    assert send.parent.span_id == checkout.context.span_id
    assert process.parent is not None
    assert process.parent.span_id == send.context.span_id
    assert charge.parent is not None
    assert charge.parent.span_id == process.context.span_id
    assert inside == [(checkout.context.trace_id, "acme")]
    assert (send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    partition = f"{receipt.queue.broker_name}:{receipt.queue.queue_id}"
    common = {
        "messaging.system": "rocketmq",
        "messaging.destination.name": "orders",
        "messaging.destination.partition.id": partition,
        "messaging.message.body.size": 6,
        "messaging.message.id": receipt.message_id,
        "messaging.rocketmq.message.tag": "paid",
        "messaging.rocketmq.message.keys": ("A17", "B2"),
    }
    broker = attributes(send).pop("server.port")
    assert attributes(send) == common | {
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "server.address": "127.0.0.1",
        "server.port": broker,
    }
    assert isinstance(broker, int)
    assert attributes(process) == common | {
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.consumer.group.name": "billing",
        "pocketmq.outcome": "ok",
    }
    assert trace.get_current_span().get_span_context().is_valid is False


def test_the_messages_of_a_batch_have_spans_of_their_own_that_the_batches_link_to(
    cluster: Cluster,
) -> None:
    traces, handled, counts = Traces(), threading.Semaphore(0), list[int]()

    def handle(messages: list[mq.ReceivedMessage]) -> None:
        counts.append(len(messages))
        for _ in messages:
            handled.release()

    consumer = traces.consumer(cluster, "batches", handler_batch=8)
    consumer.subscribe("many", "*", handle)
    with traces.producer(cluster) as producer:
        cluster.create_topic("many", queues=1)
        producer.send_batch([Message("many", b"%d" % number) for number in range(3)])
        with consumer:
            for _ in range(3):
                assert handled.acquire(timeout=WAIT)
    spans = traces.spans()
    created = [span.context.span_id for span in spans["create many"]]
    assert len(set(created)) == 3
    assert {span.kind for span in spans["create many"]} == {SpanKind.PRODUCER}
    (send,) = spans["send many"]
    assert [link.context.span_id for link in send.links] == created
    assert (send.kind, attributes(send)["messaging.batch.message_count"]) == (SpanKind.CLIENT, 3)
    assert counts == [3]
    (process,) = spans["process many"]
    assert [link.context.span_id for link in process.links] == created
    assert process.parent is None
    assert attributes(process)["messaging.batch.message_count"] == 3


def test_a_context_of_javas_agent_is_the_handlers_parent_and_is_kept_when_sent(
    cluster: Cluster,
) -> None:
    traces, handled = Traces(), threading.Event()
    found: list[str] = []

    def handle(message: mq.ReceivedMessage) -> None:
        found.append(message.properties["traceparent"])
        handled.set()

    consumer = traces.consumer(cluster, "java").subscribe("from-java", "*", handle)
    with consumer, traces.producer(cluster) as producer:
        producer.send(Message("from-java", b"x", properties={"traceparent": JAVA}))
        assert handled.wait(WAIT)
    spans = traces.spans()
    (process,), (send,) = spans["process from-java"], spans["send from-java"]
    assert found == [JAVA]
    assert process.parent is not None
    assert f"{process.parent.trace_id:032x}-{process.parent.span_id:016x}" in JAVA
    assert f"{send.links[0].context.span_id:016x}" in JAVA


def test_failures_are_in_the_spans(cluster: Cluster) -> None:
    traces, tried = Traces(), threading.Semaphore(0)

    def handle(message: mq.ReceivedMessage) -> None:
        if message.reconsume_times:
            return  # one may come again before the other has come at all
        tried.release()
        if message.body == b"later":
            raise mq.RetryLater(1)
        raise ValueError("no price")

    consumer = traces.consumer(cluster, "failing").subscribe("poison", "*", handle)
    with consumer, traces.producer(cluster) as producer:
        producer.send(Message("poison", b"later"))
        producer.submit(Message("poison", b"bad")).result(WAIT)
        for _ in range(2):
            assert tried.acquire(timeout=WAIT)
        nowhere: Any = lambda queues, message: None  # noqa: E731
        with pytest.raises(QueueNotSelected):
            producer.send(Message("poison", b"x"), selector=nowhere)
        wait_for(lambda: len(traces.spans()["send poison"]) == 3, "the end of the submitted one")
    spans = traces.spans()
    by_outcome = {attributes(span)["pocketmq.outcome"]: span for span in spans["process poison"]}
    error, later = by_outcome["error"], by_outcome["retry"]
    assert (error.status.status_code, error.status.description) == (StatusCode.ERROR, "no price")
    assert attributes(error)["error.type"] == "ValueError"
    assert error.events[0].name == "exception"
    assert later.status.status_code is StatusCode.UNSET
    one, two, failed = sorted(spans["send poison"], key=lambda span: span.start_time or 0)
    assert one.status.status_code is two.status.status_code is StatusCode.UNSET
    assert failed.status.status_code is StatusCode.ERROR
    assert attributes(failed)["error.type"] == "pocketmq.errors.transport.QueueNotSelected"


async def test_asyncio_sends_and_handlers_have_their_own_traces_side_by_side() -> None:
    traces, both, seen = Traces(), asyncio.Barrier(3), dict[bytes, int]()

    async def handle(message: aio.ReceivedMessage) -> None:
        seen[message.body] = trace.get_current_span().get_span_context().trace_id
        await both.wait()
        assert seen[message.body] == trace.get_current_span().get_span_context().trace_id

    async with AsyncCluster() as cluster:
        sending = otel.send_interceptors(traces.provider)
        handling = otel.handler_interceptors(traces.provider)
        consumer = aio.PushConsumer(
            cluster.address, group="a", consume_from="first", profile="4.x", interceptors=handling
        ).subscribe("orders", "*", handle)
        async with aio.Producer(cluster.address, group="shop", interceptors=sending) as producer:
            with traces.tracer.start_as_current_span("one") as one:
                await producer.send(Message("orders", b"1"))
            with traces.tracer.start_as_current_span("two") as two:
                await producer.submit(Message("orders", b"2"))
            async with consumer:
                await asyncio.wait_for(both.wait(), WAIT)
    assert seen == {b"1": one.get_span_context().trace_id, b"2": two.get_span_context().trace_id}
    assert len(traces.spans()["process orders"]) == 2


def traced(message: mq.ReceivedMessage) -> str:
    span: Any = trace.get_current_span()
    return str(span.name)


def test_what_is_pulled_has_spans_where_the_application_makes_them(cluster: Cluster) -> None:
    traces = Traces()
    with traces.producer(cluster) as producer:
        receipt = producer.send(Message("pulled", b"1"))
    receiving = otel.Receiving("audit", tracer_provider=traces.provider)
    with mq.PullConsumer(cluster.address, group="audit") as consumer:
        consumer.assign([receipt.queue])
        consumer.seek_to_begin(receipt.queue)
        assert receiving.received([]) == []
        (message,) = receiving.received(consumer.poll(WAIT))
    prices: dict[object, int] = {}
    with pytest.raises(KeyError) as failed, receiving.processing(message) as span:
        prices[trace.get_current_span()]
    assert failed.value.args == (span,)
    tracing = otel.handler_interceptors(traces.provider)
    handler = intercepted(traced, tracing, group="audit", topic="direct", batch=False)
    assert handler(message) == "process direct"
    spans = traces.spans()
    (receive,), (process,), (send,) = (
        spans[f"{word} pulled"] for word in ("receive", "process", "send")
    )
    assert [link.context.span_id for link in receive.links] == [send.context.span_id]
    assert receive.kind is SpanKind.CLIENT
    assert process.parent is not None
    assert process.parent.span_id == send.context.span_id
    assert process.status.status_code is StatusCode.ERROR
    assert trace.get_current_span().get_span_context().is_valid is False


def test_without_a_provider_a_message_stays_as_it_is(cluster: Cluster) -> None:
    producer = mq.Producer(
        cluster.address, group="plain", interceptors=otel.send_interceptors(), send_timeout=30.0
    )
    with producer:
        receipt = producer.send(Message("untraced", b"1"))
    with mq.PullConsumer(cluster.address, group="audit") as consumer:
        consumer.assign([receipt.queue])
        consumer.seek_to_begin(receipt.queue)
        (message,) = consumer.poll(WAIT)
    assert "traceparent" not in message.properties
