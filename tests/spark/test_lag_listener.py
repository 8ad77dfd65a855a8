"""What a stream's progress says: a line for the log, and a file for Prometheus."""

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pocketmq.model import MessageQueue
from pocketmq.spark.lag_listener import LagListener, StreamSummary, prometheus_text, summary_of


def progress(run: str = "r", name: str | None = "orders to lake", **reached: int) -> dict[str, Any]:
    ends = {"orders": {"broker-a": {"0": 10, "1": 30, "2": 10}}}
    at = {"orders": {"broker-a": {f"{n}": reached.get(f"q{n}", 10) for n in range(3)}}}
    source = {"endOffset": json.dumps(at), "latestOffset": json.dumps(ends)}
    return {
        "id": "an-id",
        "runId": run,
        "name": name,
        "batchId": 7,
        "numInputRows": 40,
        "processedRowsPerSecond": 123.4,
        "sources": [source],
    }


def event(**found: Any) -> Any:
    """Return an event with a progress as Spark's objects have it."""
    told = dict(found)
    told["sources"] = [SimpleNamespace(**each) for each in found["sources"]]
    return SimpleNamespace(progress=SimpleNamespace(**told))


def test_lag_speed_and_skew_are_summed_up() -> None:
    found = summary_of(progress(q0=5, q1=25))
    assert found == StreamSummary(
        query="orders to lake",
        batch=7,
        rows=40,
        rows_per_second=123.4,
        lag=10,
        queue=MessageQueue("orders", "broker-a", 0),
        queue_lag=5,
        skew=1.5,
    )
    assert found.line() == (
        "stream progress: query=orders to lake batch=7 rows=40 rows_per_second=123 lag=10 "
        "queue=orders/broker-a:0 queue_lag=5 skew=1.5"
    )
    idle = summary_of(progress(name=None, q1=30))
    assert (idle.query, idle.lag, idle.queue, idle.skew) == ("an-id", 0, None, 0.0)
    assert idle.line().endswith("rows_per_second=123 lag=0")


def test_prometheus_reads_it() -> None:
    strange = summary_of(progress(name='a "b"\\\n', q1=10))
    lines = prometheus_text([strange]).splitlines()
    assert "# TYPE pocketmq_stream_lag gauge" in lines
    assert 'pocketmq_stream_lag{query="a \\"b\\"\\\\\\n"} 20' in lines
    assert 'pocketmq_stream_skew{query="a \\"b\\"\\\\\\n"} 3' in lines


def test_the_file_has_the_queries_that_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[StreamSummary] = []
    listener = LagListener(metrics_file=tmp_path / "streams.prom", report=seen.append)
    with caplog.at_level(logging.INFO, "pocketmq.spark"):
        listener.onQueryProgress(event(**progress("r1", "one")))
        listener.onQueryProgress(event(**progress("r2", "two", q1=30)))
        listener.onQueryProgress(event(**progress("r2", "two", q1=29)))
    assert [each.lag for each in seen] == [20, 0, 1]
    assert caplog.text.count("stream progress: query=two") == 2
    text = (tmp_path / "streams.prom").read_text()
    assert 'pocketmq_stream_lag{query="one"} 20' in text
    assert 'pocketmq_stream_lag{query="two"} 1' in text
    listener.onQueryTerminated(SimpleNamespace(runId="r1"))
    assert "one" not in (tmp_path / "streams.prom").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["streams.prom"]


def test_a_file_that_cannot_be_written_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    listener = LagListener(metrics_file=tmp_path / "missing" / "streams.prom")
    listener.onQueryProgress(event(**progress()))
    assert "metrics file not written" in caplog.text
