"""What a broker measured, as Prometheus text: histograms and counters of RocketMQ 5.x.

Names are those its exporter writes, with the unit at the end; a histogram has `_bucket` with `le`,
`_count` and `_sum`.
"""

from collections.abc import Callable, Iterator

from pocketmq.broker.metrics.measures import Counts, Histogram, Key, Measures
from pocketmq.broker.metrics.text import Labels, header, sample
from pocketmq.errors import ResponseCode
from pocketmq.protocol.codes import RequestCode

Label = Callable[[Key], Labels]


def measured_lines(
    measures: Measures, node: Labels, topic_labels: Callable[[str], Labels]
) -> Iterator[str]:
    """Give the figures, a few lines at a time; `topic_labels` knows what else a topic is."""
    for name, about, histogram, label in _histograms(measures, topic_labels):
        yield from _histogram(name, about, histogram, node, label)
    for name, about, counts, label in _counters(measures):
        yield from _counter(name, about, counts, node, label)


def _histograms(
    measures: Measures, topic_labels: Callable[[str], Labels]
) -> tuple[tuple[str, str, Histogram, Label], ...]:
    """Give name, help, values, and labels beside those of the node."""

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
    """Give name, help, values, and labels beside those of the node."""
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


def _histogram(
    name: str, about: str, histogram: Histogram, node: Labels, label: Label
) -> Iterator[str]:
    started = False
    for key, counts in histogram.counts.items():
        labels = node | label(key)
        lines = [] if started else [header("histogram", name, about)]
        started, total = True, 0
        for bound, count in zip((*histogram.bounds, None), counts, strict=True):
            total += count
            limit = "+Inf" if bound is None else f"{bound:.1f}"
            lines.append(sample(f"{name}_bucket", labels | {"le": limit}, total))
        lines.append(sample(f"{name}_count", labels, total))
        lines.append(sample(f"{name}_sum", labels, round(histogram.sums[key])))
        yield "".join(lines)


def _counter(name: str, about: str, counts: Counts, node: Labels, label: Label) -> Iterator[str]:
    started = False
    for key, count in counts.by_key.items():
        text = sample(name, node | label(key), count)
        yield text if started else header("counter", name, about) + text
        started = True


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
    """Give a code's name as Java shows it; a number that has none is shown as such."""
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
