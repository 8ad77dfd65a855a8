"""The lag, speed and skew of streams, logged after each micro-batch and written for Prometheus.

Spark's Python API has no metrics of a source, so they are computed from the offsets of a query's
progress: nothing is asked of the cluster.

    from pocketmq.spark.lag_listener import LagListener

    spark.streams.addListener(LagListener(metrics_file="/var/lib/node_exporter/streams.prom"))
"""

import logging
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql.streaming.listener import StreamingQueryListener

from pocketmq.model import MessageQueue
from pocketmq.spark.progress import stream_lag

logger = logging.getLogger("pocketmq.spark")


class StreamSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a micro-batch of a query left behind."""

    query: str
    """The query's name, or its id."""
    batch: int
    rows: int
    rows_per_second: float
    lag: int
    """Messages that are not read yet, of all queues."""
    queue: MessageQueue | None
    """The queue that is farthest behind, if any is."""
    queue_lag: int
    skew: float
    """The lag of that queue, divided by the average of all: 1 is even, 0 is no lag."""

    def line(self) -> str:
        """Return a line for the log."""
        text = (
            f"stream progress: query={self.query} batch={self.batch} rows={self.rows} "
            f"rows_per_second={self.rows_per_second:.0f} lag={self.lag}"
        )
        if self.queue is None:
            return text
        place = f"{self.queue.topic}/{self.queue.broker_name}:{self.queue.queue_id}"
        return f"{text} queue={place} queue_lag={self.queue_lag} skew={self.skew:.1f}"


def summary_of(progress: Mapping[str, Any] | Any) -> StreamSummary:
    """Return the summary of a query's progress, such as `query.lastProgress`."""

    def field(name: str) -> Any:
        return progress[name] if isinstance(progress, Mapping) else getattr(progress, name)

    lag = stream_lag(progress)
    worst = max(lag.queues, key=lambda queue: lag.queues[queue], default=None)
    worst = None if worst is None or not lag.queues[worst] else worst
    queue_lag = 0 if worst is None else lag.queues[worst]
    return StreamSummary(
        query=str(field("name") or field("id")),
        batch=int(field("batchId")),
        rows=int(field("numInputRows")),
        rows_per_second=float(field("processedRowsPerSecond") or 0.0),
        lag=lag.total,
        queue=worst,
        queue_lag=queue_lag,
        skew=queue_lag * len(lag.queues) / lag.total if lag.total else 0.0,
    )


_METRICS: dict[str, tuple[str, str, Callable[[StreamSummary], float]]] = {
    "pocketmq_stream_lag": ("gauge", "Messages not read yet", lambda each: each.lag),
    "pocketmq_stream_queue_lag": (
        "gauge",
        "Messages not read yet of the queue farthest behind",
        lambda each: each.queue_lag,
    ),
    "pocketmq_stream_skew": (
        "gauge",
        "Lag of the queue farthest behind, divided by the average",
        lambda each: each.skew,
    ),
    "pocketmq_stream_rows_per_second": (
        "gauge",
        "Rows processed per second in the last micro-batch",
        lambda each: each.rows_per_second,
    ),
    "pocketmq_stream_batch": ("gauge", "Number of the last micro-batch", lambda each: each.batch),
}


def prometheus_text(summaries: Iterable[StreamSummary]) -> str:
    """Return summaries in the text format of Prometheus."""
    found = list(summaries)
    lines = []
    for name, (kind, words, value) in _METRICS.items():
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        lines += [f'{name}{{query="{_escaped(each.query)}"}} {value(each):g}' for each in found]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class LagListener(StreamingQueryListener):
    """Logs a line for each micro-batch of all queries of a session, and keeps a file up to date.

    `report` is called with each summary. Spark calls listeners from a thread of its own.
    """

    def __init__(
        self,
        *,
        metrics_file: str | Path | None = None,
        report: Callable[[StreamSummary], None] | None = None,
    ) -> None:
        self._file = None if metrics_file is None else Path(metrics_file)
        self._report = report
        self._last: dict[str, StreamSummary] = {}
        self._lock = threading.Lock()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Do nothing."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Log, write and report what a micro-batch left behind."""
        summary = summary_of(event.progress)
        logger.info("%s", summary.line())
        with self._lock:
            self._last[str(event.progress.runId)] = summary
            self._write()
        if self._report is not None:
            self._report(summary)

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Forget the query."""
        with self._lock:
            self._last.pop(str(event.runId), None)
            self._write()

    def _write(self) -> None:
        if self._file is None:
            return
        text = prometheus_text(self._last.values())
        try:
            with tempfile.NamedTemporaryFile("w", dir=self._file.parent, delete=False) as draft:
                draft.write(text)
            Path(draft.name).chmod(0o644)
            os.replace(draft.name, self._file)  # noqa: PTH105 - readers never see half a file
        except OSError as error:
            logger.warning('metrics file not written: path=%s error="%s"', self._file, error)
