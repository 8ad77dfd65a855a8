"""Metric families of `prometheus-client`, made at scrape time from the broker's own tables.

The library's own counters and histograms are not used: they lock on every change, and the tables
are kept anyway. It writes the format, quoting included; nothing here knows what is measured.
"""

from collections.abc import Iterable
from typing import TypeAlias

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

__all__ = ["CONTENT_TYPE", "Labels", "Value", "expose", "family"]

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
Labels: TypeAlias = dict[str, str]
Value: TypeAlias = tuple[Labels, float]


def family(kind: str, name: str, about: str, values: Iterable[Value] = ()) -> Metric:
    """Build a family of one type; a counter's name ends in `_total`, as it is shown."""
    made = Metric(name.removesuffix("_total"), about, kind)
    for labels, value in values:
        made.add_sample(name, labels, value)
    return made


def expose(families: Iterable[Metric]) -> bytes:
    """Write families in Prometheus' text format; those without a sample are left out.

    Touches nothing but its argument, so that it may run beside the loop.
    """
    return generate_latest(_Collected([each for each in families if each.samples]))


class _Collected(Collector):
    """Families that have been collected already, in the form `generate_latest` asks for."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
