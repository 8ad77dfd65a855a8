"""What needs OpenTelemetry's SDK: the choice of an exporter, and families as the SDK's data.

The exporter is chosen by OpenTelemetry's own environment variables, or by Java's settings. The
exporters read the rest of `OTEL_EXPORTER_OTLP_*` (endpoint, headers, certificates, timeout)
themselves. Blocks while it imports them.

Data have the instrument names of RocketMQ 5.x. Java names an instrument without its unit, and
its Prometheus exporter appends the unit; so the unit at the end of a family's name becomes the
unit of the metric. Sums and histograms are cumulative since the broker's start. `metrics_data`
touches nothing but its arguments, so that it may run beside the loop.
"""

import os
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from itertools import pairwise
from typing import Any

from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.metrics.export import MetricExporter
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

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


SCOPE = "broker-meter"
"""Java's name of the broker's meter."""
_UNITS = ("milliseconds", "seconds", "bytes")
_WITH_UNIT = "_behind_bytes"
"""How the instruments end that have the unit in their own name in Java, too."""
_CUMULATIVE = export.AggregationTemporality.CUMULATIVE


def metrics_data(
    families: Iterable[Family], resource: Resource, start_ns: int, now_ns: int
) -> export.MetricsData:
    """Return all families that have a sample, measured from `start_ns` to `now_ns`."""
    metrics = [_metric(each, start_ns, now_ns) for each in families if each.samples]
    scope = export.ScopeMetrics(InstrumentationScope(SCOPE), metrics, "")
    return export.MetricsData([export.ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, start_ns: int, now_ns: int) -> export.Metric:
    data: export.Gauge | export.Histogram | export.Sum
    if family.type == "histogram":
        points = list(_distributions(family.samples, start_ns, now_ns))
        data = export.Histogram(points, _CUMULATIVE)
        name, unit = _instrument(family.name)
    elif family.type == "counter":
        data = export.Sum(
            _numbers(family.samples, start_ns, now_ns), _CUMULATIVE, is_monotonic=True
        )
        name, unit = _instrument(family.samples[0].name)
    else:
        data = export.Gauge(_numbers(family.samples, now_ns, now_ns))
        name, unit = _instrument(family.name)
    return export.Metric(name, family.documentation, unit, data)


def _instrument(name: str) -> tuple[str, str]:
    """Return the name of Java's instrument, and its unit."""
    for unit in _UNITS:
        if name.endswith(f"_{unit}"):
            return (name if name.endswith(_WITH_UNIT) else name.removesuffix(f"_{unit}")), unit
    return name, ""


def _numbers(samples: Iterable[Sample], start_ns: int, now_ns: int) -> list[export.NumberDataPoint]:
    return [export.NumberDataPoint(each.labels, start_ns, now_ns, each.value) for each in samples]


def _distributions(
    samples: Iterable[Sample], start_ns: int, now_ns: int
) -> Iterator[export.HistogramDataPoint]:
    """Yield a point for each key: its buckets, which add up, then the count and the sum."""
    bounds: list[float] = []
    totals = [0]
    for sample in samples:
        if sample.name.endswith("_bucket"):
            bounds.append(float(sample.labels["le"]))
            totals.append(int(sample.value))
        elif sample.name.endswith("_sum"):
            yield export.HistogramDataPoint(
                attributes=sample.labels,
                start_time_unix_nano=start_ns,
                time_unix_nano=now_ns,
                count=totals[-1],
                sum=sample.value,
                bucket_counts=[after - before for before, after in pairwise(totals)],
                explicit_bounds=bounds[:-1],  # without +Inf
                min=float("nan"),
                max=float("nan"),
            )
            bounds, totals = [], [0]
