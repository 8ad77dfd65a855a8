"""Metric families of `prometheus-client`, made at scrape time from the broker's own tables.

The library's own counters and histograms are not used: they lock on every change, and the tables
are kept anyway. It writes the format, quoting included.

What the broker measured becomes histograms and counters of RocketMQ 5.x. Names are those of Java's
exporter, with the unit at the end; a histogram has `_bucket` with `le`, `_count` and `_sum`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pocketmq.broker.metrics.measures import Counts, Histogram, Key, Measures
from pocketmq.errors import ResponseCode
from pocketmq.protocol import RequestCode

__all__ = ["CONTENT_TYPE", "Labels", "Value", "expose", "family", "measured_families"]

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
Labels: TypeAlias = dict[str, str]
Value: TypeAlias = tuple[Labels, float]
Label: TypeAlias = Callable[[Key], Labels]


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
    return generate_latest(_GivenFamilies([each for each in families if each.samples]))


class _GivenFamilies(Collector):
    """Families that have been collected already, in the form `generate_latest` asks for."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def measured_families(
    measures: Measures, node: Labels, topic_labels: Callable[[str], Labels]
) -> Iterator[Metric | None]:
    """Yield the families, and None between keys, where the caller may let the loop run.

    `topic_labels` returns the labels of a topic.
    """
    for name, about, histogram, label in _histograms(measures, topic_labels):
        made = family("histogram", name, about)
        for key in list(histogram.counts):  # others may be added while the loop runs
            _add_histogram(made, name, histogram, key, node | label(key))
            yield None
        yield made
    for name, about, counts, label in _counters(measures):
        values = [(node | label(key), count) for key, count in counts.by_key.items()]
        yield family("counter", name, about, values)


def _add_histogram(made: Metric, name: str, histogram: Histogram, key: Key, labels: Labels) -> None:
    total = 0
    for bound, count in zip((*histogram.bounds, None), histogram.counts[key], strict=True):
        total += count
        limit = "+Inf" if bound is None else f"{bound:.1f}"
        made.add_sample(f"{name}_bucket", labels | {"le": limit}, total)
    made.add_sample(f"{name}_count", labels, total)
    made.add_sample(f"{name}_sum", labels, round(histogram.sums[key]))


def _histograms(
    measures: Measures, topic_labels: Callable[[str], Labels]
) -> tuple[tuple[str, str, Histogram, Label], ...]:
    """Return name, help, values, and labels beside those of the node."""

    def typed(key: Key) -> Labels:
        return topic_labels(str(key[0]))

    return (
        ("rocketmq_rpc_latency_milliseconds", "Rpc latency", measures.rpc, _call),
        ("rocketmq_message_size", "Incoming messages size", measures.size, typed),
        (
            "rocketmq_topic_create_execution_time_milliseconds",
            "The distribution of create topic time",
            measures.topic_made,
            _status,
        ),
        (
            "rocketmq_consumer_group_create_execution_time_milliseconds",
            "The distribution of create subscription time",
            measures.group_made,
            _status,
        ),
        (
            "rocketmq_finish_message_latency_milliseconds",
            "Transaction finish latency, in seconds as in Java",
            measures.finished,
            _by_topic,
        ),
        (
            "rocketmq_delay_message_latency_seconds",
            "Timer message set latency distribution",
            measures.delay,
            _timed,
        ),
    )


def _counters(measures: Measures) -> tuple[tuple[str, str, Counts, Label], ...]:
    """Return name, help, values, and labels beside those of the node."""
    timed_in, timed_out = measures.timed_in, measures.timed_out
    return (
        (
            "rocketmq_commit_messages_total",
            "Total number of commit messages",
            measures.committed,
            _by_topic,
        ),
        (
            "rocketmq_rollback_messages_total",
            "Total number of rollback messages",
            measures.rolled_back,
            _by_topic,
        ),
        ("rocketmq_timer_enqueue_total", "Total number of timer enqueue", timed_in, _timed),
        ("rocketmq_timer_dequeue_total", "Total number of timer dequeue", timed_out, _timed),
        (
            "rocketmq_pop_revive_retry_messages_total",
            "Total number of put message to pop retry topic",
            measures.revived,
            _revived,
        ),
    )


def _call(key: Key) -> Labels:
    code, answer, suspended = key
    return {
        "protocol_type": "remoting",
        "request_code": _name(RequestCode, int(code)),
        "response_code": _name(ResponseCode, int(answer)),
        "is_long_polling": "true" if suspended else "false",
        "result": "success",
    }


def _name(kind: type[RequestCode | ResponseCode], code: int) -> str:
    """Return a code's name as Java shows it; a number without a name is shown as it is."""
    try:
        return kind(code).name.lower()
    except ValueError:
        return str(code)


def _status(key: Key) -> Labels:
    return {"invocation_status": str(key[0])}


def _revived(key: Key) -> Labels:
    return {"topic": str(key[0]), "consumer_group": str(key[1]), "put_status": "PUT_OK"}


def _by_topic(key: Key) -> Labels:
    return {"topic": str(key[0])}


def _timed(key: Key) -> Labels:
    return {"storage_medium": "disk", "storage_type": "local"} | _by_topic(key)
