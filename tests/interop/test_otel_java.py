"""Traces that cross between Java with OpenTelemetry's agent and our clients with `pocketmq.otel`."""

import threading
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pocketmq import Cluster, Message, Producer, PushConsumer, otel
from tests.interop.java_agent import with_agent
from tests.interop.jvm import Jars, Process
from tests.otel.receiver import receiving

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

FROM_JAVA, TO_JAVA = "from-java", "to-java"


def test_a_trace_goes_from_java_to_ours_and_from_ours_to_java(jars: Jars, tmp_path: Path) -> None:
    """The agent writes and reads the context in user properties, as our interceptors do."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    with Cluster() as cluster, receiving() as receiver:
        for topic in (FROM_JAVA, TO_JAVA):
            cluster.create_topic(topic)
        interceptors = otel.send_interceptors(provider)
        with Producer(cluster.address, group="ours", interceptors=interceptors) as producer:
            producer.send(Message(TO_JAVA, b"from ours"))
        command = jars.compiled(tmp_path, "Traced", cluster.address, FROM_JAVA, TO_JAVA)
        with Process(with_agent(command, receiver.url), tmp_path) as process:
            lines = process.wait_for_end()
        assert lines[-1:] == ["end"], "\n".join(lines)
        _consume(cluster, provider)
        java = {(span.kind, _topic(span)): span for span in receiver.spans}
        ours = {span.name: span for span in memory.get_finished_spans()}

    sent_by_java = java[Span.SPAN_KIND_PRODUCER, FROM_JAVA]
    assert _parent(ours[f"process {FROM_JAVA}"]) == (sent_by_java.trace_id, sent_by_java.span_id)
    processed = java[Span.SPAN_KIND_CONSUMER, TO_JAVA]
    assert (processed.trace_id, processed.parent_span_id) == _ids(ours[f"send {TO_JAVA}"])


def _consume(cluster: Cluster, provider: TracerProvider) -> None:
    came = threading.Event()
    interceptors = otel.handler_interceptors(provider)
    consumer = PushConsumer(
        cluster.address, group="ours", consume_from="first", interceptors=interceptors
    )
    consumer.subscribe(FROM_JAVA, "*", lambda _: came.set())
    with consumer:
        assert came.wait(30)


def _topic(span: Span) -> str:
    found = {pair.key: pair.value.string_value for pair in span.attributes}
    return str(found.get("messaging.destination.name", ""))


def _parent(span: ReadableSpan) -> tuple[bytes, bytes]:
    parent = span.parent
    assert parent is not None, "no context came with the message"
    return parent.trace_id.to_bytes(16), parent.span_id.to_bytes(8)


def _ids(span: ReadableSpan) -> tuple[bytes, bytes]:
    context = span.context
    assert context is not None
    return context.trace_id.to_bytes(16), context.span_id.to_bytes(8)
