"""OpenTelemetry for the clients: traces and metrics by the messaging semantic conventions.

    from pocketmq import otel

    mq.Producer(address, group="shop", interceptors=otel.send_interceptors())
    mq.PushConsumer(address, group="billing", interceptors=otel.handler_interceptors())

Messages carry the trace context of their send in their properties, by the propagators that are
configured (by default W3C's `traceparent`, `tracestate` and `baggage`), as with OpenTelemetry's
agent for Java. Needs the extra `otel`. Nothing is recorded without an SDK, or before it is set up.
"""

try:
    import opentelemetry.metrics
    import opentelemetry.trace  # noqa: F401 - asked for here, where the cure can be named
except ImportError as _missing:
    raise ImportError(
        "pocketmq.otel needs OpenTelemetry; run: pip install 'pocketmq[otel]'"
    ) from _missing

from pocketmq.otel.tracing import Receiving, handler_interceptors, send_interceptors

__all__ = ["Receiving", "handler_interceptors", "send_interceptors"]
