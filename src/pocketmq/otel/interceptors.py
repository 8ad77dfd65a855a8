"""The interceptors of OpenTelemetry, ready for a client."""

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from pocketmq.client.interceptors import HandlerInterceptor, SendInterceptor
from pocketmq.otel.handler_tracing import HandlerTracing
from pocketmq.otel.metrics import HandlerMetrics, SendMetrics
from pocketmq.otel.send_tracing import SendTracing


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
