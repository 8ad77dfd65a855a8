"""Spans for pull and POP consumers, which have no handlers: called by the application."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opentelemetry import context as contexts
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span, SpanKind, TracerProvider

from pocketmq.otel import conventions as names
from pocketmq.otel.handler_tracing import Processing, links_to
from pocketmq.otel.metrics import consumed_counter, open_meter
from pocketmq.otel.send_tracing import failed
from pocketmq.protocol import ReceivedMessage


class Receiving:
    """Spans and metrics of what a group receives with `poll` or `receive`.

    receiving = otel.Receiving("audit")
    messages = receiving.received(consumer.poll())
    for message in messages:
        with receiving.processing(message):
            ...
    """

    def __init__(
        self,
        group: str,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._group = group
        self._processing = Processing(tracer_provider)
        self._consumed = consumed_counter(open_meter(meter_provider))

    def received(self, messages: list[ReceivedMessage]) -> list[ReceivedMessage]:
        """Make a span `receive TOPIC` for each topic, with links to its messages; return them."""
        by_topic: dict[str, list[ReceivedMessage]] = {}
        for message in messages:
            by_topic.setdefault(message.topic, []).append(message)
        for topic, some in by_topic.items():
            attributes = names.operation("receive", "receive", topic)
            attributes[names.CONSUMER_GROUP] = self._group
            self._consumed.add(len(some), dict(attributes))
            attributes[names.BATCH_COUNT] = len(some)
            self._processing.tracer.start_span(
                f"receive {topic}",
                kind=SpanKind.CLIENT,
                attributes=attributes,
                links=links_to(some),
            ).end()
        return messages

    @contextmanager
    def processing(self, message: ReceivedMessage | Sequence[ReceivedMessage]) -> Iterator[Span]:
        """Make a span `process TOPIC`, current inside `with`, for a message or a list of them."""
        messages = (message,) if isinstance(message, ReceivedMessage) else tuple(message)
        topic = messages[0].topic if messages else ""
        span, context = self._processing.start(self._group, topic, messages)
        token = contexts.attach(context)
        try:
            yield span
        except BaseException as error:
            failed(span, error)
            raise
        finally:
            contexts.detach(token)
            span.end()
