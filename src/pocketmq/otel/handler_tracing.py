"""Spans of handler calls: `process TOPIC`, current while the handler runs.

The span of a single message is a child of the context that the message carries, as with
OpenTelemetry's agent for Java. A list of messages may come from several traces: its span links to
them all.
"""

from collections.abc import Callable, Iterable, Sequence

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, TracerProvider

from pocketmq.client.interceptors import HandlerCall
from pocketmq.client.push.interception import outcome
from pocketmq.otel import conventions as names
from pocketmq.otel.send_tracing import context_of, failed, link_to
from pocketmq.protocol import ReceivedMessage


def links_to(messages: Iterable[ReceivedMessage]) -> list[Link]:
    """Return links to the contexts that messages carry."""
    links = (link_to(context_of(each), names.of_message(each)) for each in messages)
    return [link for link in links if link is not None]


class Processing:
    """Starts the spans of one provider."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self.tracer = trace.get_tracer(names.SCOPE, tracer_provider=provider)

    def start(
        self, group: str, topic: str, messages: Sequence[ReceivedMessage]
    ) -> tuple[Span, Context]:
        """Start the span of a handler call; return it, and the context to handle messages in."""
        attributes = names.operation("process", "process", topic)
        attributes[names.CONSUMER_GROUP] = group
        origin: Context | None = None
        links: list[Link] = []
        if len(messages) == 1:
            origin = context_of(messages[0])
            attributes |= names.of_message(messages[0])
        else:
            attributes[names.BATCH_COUNT] = len(messages)
            links = links_to(messages)
        span = self.tracer.start_span(
            f"process {topic}",
            context=origin,
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=links,
        )
        return span, trace.set_span_in_context(span, origin)  # with the baggage of the message


class HandlerTracing:
    """An interceptor of push consumers that makes spans."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._processing = Processing(provider)

    def __call__(self, call: HandlerCall) -> Callable[[HandlerCall], object]:
        """Start the span of a handler call and make it current; return what ends it."""
        span, context = self._processing.start(call.group, call.topic, call.messages)
        token = contexts.attach(context)

        def end(call: HandlerCall) -> None:
            contexts.detach(token)
            if span.is_recording():
                ended = outcome(call.result, call.error)
                span.set_attribute(names.OUTCOME, ended)
                failed(span, call.error if ended == "error" else None)
            span.end()

        return end
