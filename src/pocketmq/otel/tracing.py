"""Spans of sends, of handler calls, and of what pull and POP consumers receive.

A single message has one span, `send TOPIC`, whose context it carries. Messages of a batch have
a span `create TOPIC` each, so that each has a context of its own; the span of the batch links
to them. A message that carries a context already keeps it, and the span of its send links to
it.

A handler call has a span `process TOPIC`, current while the handler runs: for a single message
a child of the context that the message carries, as with OpenTelemetry's agent for Java. A list
of messages may come from several traces: its span links to them all. Pull and POP consumers
have no handlers: the application calls `Receiving`.

`send_interceptors` and `handler_interceptors` are those of spans and of metrics, ready for a
client.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from opentelemetry import context as contexts
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from pocketmq.client.interceptors import (
    HandlerCall,
    HandlerInterceptor,
    SendCall,
    SendInterceptor,
    SendKind,
)
from pocketmq.client.push.wrapping import outcome
from pocketmq.errors import InvalidInput
from pocketmq.model import Message
from pocketmq.otel import conventions as names
from pocketmq.otel.metrics import HandlerMetrics, SendMetrics, consumed_counter, open_meter
from pocketmq.protocol import ReceivedMessage

logger = logging.getLogger("pocketmq.otel")


def context_of(message: Message | ReceivedMessage) -> Context:
    """Return the context that a message carries; an empty one if it carries none."""
    return propagate.extract(message.properties, context=Context())


def link_to(context: Context, attributes: names.Attributes | None = None) -> Link | None:
    """Return a link to the span of a context, if there is one."""
    origin = trace.get_current_span(context).get_span_context()
    return Link(origin, attributes) if origin.is_valid else None


def carry(call: SendCall, span: Span, at: int = 0) -> None:
    """Add the context of a span to the properties of a message; nothing if it is not valid."""
    if not span.get_span_context().is_valid:
        return
    carrier: dict[str, str] = {}
    propagate.inject(carrier, trace.set_span_in_context(span))
    try:
        call.add_properties(carrier, at)
    except InvalidInput as error:  # of a propagator's own making: no reason not to send
        logger.warning("trace context not added to a message: error=%s", error)


class SendTracing:
    """An interceptor of producers that makes spans."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer: Tracer = trace.get_tracer(names.SCOPE, tracer_provider=provider)

    def __call__(self, call: SendCall) -> Callable[[SendCall], object] | None:
        """Start the span of a send; return what ends it."""
        span = self._batch(call) if call.kind is SendKind.BATCH else self._single(call)

        def end(call: SendCall) -> None:
            if span.is_recording():
                span.set_attributes(names.of_receipts(call.receipts))
                failed(span, call.error)
            span.end()

        return end if span.is_recording() else None

    def _single(self, call: SendCall) -> Span:
        message = call.message
        link = link_to(context_of(message)) if message.properties else None
        span = self._tracer.start_span(
            f"send {message.topic}",
            kind=SpanKind.PRODUCER if link is None else SpanKind.CLIENT,
            attributes=names.operation("send", "send", message.topic) | names.of_message(message),
            links=() if link is None else (link,),
        )
        if link is None:
            carry(call, span)
        return span

    def _batch(self, call: SendCall) -> Span:
        topic, links = call.message.topic, list[Link]()
        for at, message in enumerate(call.messages):
            link = link_to(context_of(message)) if message.properties else None
            if link is None:
                created = self._create(message)
                carry(call, created, at)
                link = Link(created.get_span_context())
            if link.context.is_valid:
                links.append(link)
        attributes = names.operation("send", "send", topic)
        attributes[names.BATCH_COUNT] = len(call.messages)
        return self._tracer.start_span(
            f"send {topic}", kind=SpanKind.CLIENT, attributes=attributes, links=links
        )

    def _create(self, message: Message) -> Span:
        attributes = names.operation("create", "create", message.topic) | names.of_message(message)
        span = self._tracer.start_span(
            f"create {message.topic}", kind=SpanKind.PRODUCER, attributes=attributes
        )
        span.end()
        return span


def failed(span: Span, error: BaseException | None) -> None:
    """Note an error at a span."""
    if error is not None:
        span.set_attribute(names.ERROR_TYPE, names.error_type(error))
        span.record_exception(error)
        span.set_status(Status(StatusCode.ERROR, str(error)[:200]))


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


def send_interceptors(
    tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> tuple[SendInterceptor, ...]:
    """Return the interceptors of a producer; by default for the providers that are set globally."""
    return SendTracing(tracer_provider), SendMetrics(meter_provider)


def handler_interceptors(
    tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> tuple[HandlerInterceptor, ...]:
    """Return the interceptors of a push consumer; providers as for a producer."""
    return HandlerTracing(tracer_provider), HandlerMetrics(meter_provider)
