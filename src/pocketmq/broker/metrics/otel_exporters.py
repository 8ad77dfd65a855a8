"""Choosing OpenTelemetry's exporter: by its own environment variables, or by Java's settings.

The exporters read the rest of `OTEL_EXPORTER_OTLP_*` (endpoint, headers, certificates, timeout)
themselves. Blocks while it imports them.
"""

import os
from importlib.metadata import entry_points
from typing import Any

from opentelemetry.sdk.metrics.export import MetricExporter
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource

from pocketmq.broker.config import BrokerConfig
from pocketmq.errors import InvalidInput

_PLUGINS = "opentelemetry_metrics_exporter"
_PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
_INTERVAL_MS = 60_000
_SECURE = "https://"


def make_exporter(config: BrokerConfig) -> MetricExporter:
    """Return the exporter that was chosen. Raises `InvalidInput` if there is none such."""
    if config.metrics_exporter_type == "OTLP_GRPC":
        return _made("otlp_proto_grpc", **_java_options(config))
    name = os.environ.get("OTEL_METRICS_EXPORTER") or "otlp"
    if name == "otlp":
        name = _protocol()
    return _made(name)


def interval(config: BrokerConfig) -> float:
    """Return the seconds between two exports. Raises `InvalidInput`."""
    if config.metrics_exporter_type == "OTLP_GRPC":
        return config.metric_grpc_exporter_interval_in_mills / 1000
    text = os.environ.get("OTEL_METRIC_EXPORT_INTERVAL") or str(_INTERVAL_MS)
    if not text.isascii() or not text.isdecimal() or not int(text):
        raise InvalidInput(f"OTEL_METRIC_EXPORT_INTERVAL={text[:80]} is not a number of ms")
    return int(text) / 1000


def describe_source(broker: str) -> Resource:
    """Return what identifies a broker: OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME, its name."""
    found = Resource.create().merge(Resource({SERVICE_INSTANCE_ID: broker}))
    if str(found.attributes[SERVICE_NAME]).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: "pocketmq-broker"}))
    return found


def _protocol() -> str:
    chosen = (
        os.environ.get("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL")
        or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or "http/protobuf"
    )
    if chosen not in _PROTOCOLS:
        allowed = " or ".join(_PROTOCOLS)
        raise InvalidInput(f"OTEL_EXPORTER_OTLP_PROTOCOL={chosen[:80]} must be {allowed}")
    return _PROTOCOLS[chosen]


def _java_options(config: BrokerConfig) -> dict[str, Any]:
    target = config.metrics_grpc_exporter_target
    if not target:
        raise InvalidInput("metricsExporterType=OTLP_GRPC needs metricsGrpcExporterTarget")
    return {"endpoint": target, "insecure": not target.startswith(_SECURE)}


def _made(name: str, **options: Any) -> MetricExporter:
    for plugin in entry_points(group=_PLUGINS, name=name):
        exporter = plugin.load()(**options)
        if isinstance(exporter, MetricExporter):
            return exporter
    found = sorted({each.name for each in entry_points(group=_PLUGINS)})
    cure = {
        "otlp_proto_http": "; run: pip install opentelemetry-exporter-otlp-proto-http",
        "otlp_proto_grpc": "; run: pip install opentelemetry-exporter-otlp-proto-grpc",
        "prometheus": "; for Prometheus use --metrics-port",
    }.get(name, f"; installed: {', '.join(found)}")
    raise InvalidInput(f"OpenTelemetry has no metrics exporter {name[:80]!r} here{cure}")
