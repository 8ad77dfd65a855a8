"""Spans of sends, and the trace context that messages carry.

A single message has one span, `send TOPIC`, whose context it carries. Messages of a batch have a
span `create TOPIC` each, so that each has a context of its own; the span of the batch links to
them. A message that carries a context already keeps it, and the span of its send links to it.
"""

import logging
from collections.abc import Callable

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from pocketmq.client.interceptors import SendCall, SendKind
from pocketmq.errors import InvalidInput
from pocketmq.model import Message
from pocketmq.otel import conventions as names
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
