"""Families as OpenTelemetry's data, under the instrument names of RocketMQ 5.x.

Java names an instrument without its unit, and its Prometheus exporter appends the unit; so the unit
at the end of a family's name becomes the unit of the metric. Sums and histograms are cumulative
since the broker's start. Touches nothing but its arguments, so that it may run beside the loop.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

SCOPE = "broker-meter"
"""Java's name of the broker's meter."""
_UNITS = ("milliseconds", "seconds", "bytes")
_WITH_UNIT = "_behind_bytes"
"""How the instruments end that have the unit in their own name in Java, too."""
_CUMULATIVE = AggregationTemporality.CUMULATIVE


def metrics_data(
    families: Iterable[Family], resource: Resource, start_ns: int, now_ns: int
) -> MetricsData:
    """Return all families that have a sample, measured from `start_ns` to `now_ns`."""
    metrics = [_metric(each, start_ns, now_ns) for each in families if each.samples]
    scope = ScopeMetrics(InstrumentationScope(SCOPE), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, start_ns: int, now_ns: int) -> Metric:
    data: Gauge | Histogram | Sum
    if family.type == "histogram":
        points = list(_distributions(family.samples, start_ns, now_ns))
        data = Histogram(points, _CUMULATIVE)
        name, unit = _instrument(family.name)
    elif family.type == "counter":
        data = Sum(_numbers(family.samples, start_ns, now_ns), _CUMULATIVE, is_monotonic=True)
        name, unit = _instrument(family.samples[0].name)
    else:
        data = Gauge(_numbers(family.samples, now_ns, now_ns))
        name, unit = _instrument(family.name)
    return Metric(name, family.documentation, unit, data)


def _instrument(name: str) -> tuple[str, str]:
    """Return the name of Java's instrument, and its unit."""
    for unit in _UNITS:
        if name.endswith(f"_{unit}"):
            return (name if name.endswith(_WITH_UNIT) else name.removesuffix(f"_{unit}")), unit
    return name, ""


def _numbers(samples: Iterable[Sample], start_ns: int, now_ns: int) -> list[NumberDataPoint]:
    return [NumberDataPoint(each.labels, start_ns, now_ns, each.value) for each in samples]


def _distributions(
    samples: Iterable[Sample], start_ns: int, now_ns: int
) -> Iterator[HistogramDataPoint]:
    """Yield a point for each key: its buckets, which add up, then the count and the sum."""
    bounds: list[float] = []
    totals = [0]
    for sample in samples:
        if sample.name.endswith("_bucket"):
            bounds.append(float(sample.labels["le"]))
            totals.append(int(sample.value))
        elif sample.name.endswith("_sum"):
            yield HistogramDataPoint(
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
