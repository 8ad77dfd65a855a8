"""A small OTLP receiver over HTTP, for whatever exports: our brokers, OpenTelemetry's Java agent."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Receiver(ThreadingHTTPServer):
    """Takes what exporters send to `url`; the newest value of each metric, and all spans."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.metrics: dict[str, Metric] = {}
        self.resource: dict[str, str] = {}
        self.spans: list[Span] = []
        self.exports = 0
        """How many times metrics came."""
        self.status = 200

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/metrics":
            for each in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                attributes = each.resource.attributes
                self.resource = {pair.key: pair.value.string_value for pair in attributes}
                for scope in each.scope_metrics:
                    assert scope.scope.name == "broker-meter"
                    self.metrics |= {metric.name: metric for metric in scope.metrics}
            self.exports += 1
        elif path == "/v1/traces":
            for traced in ExportTraceServiceRequest.FromString(body).resource_spans:
                for spans in traced.scope_spans:
                    self.spans.extend(spans.spans)

    def value(self, name: str, **labels: str) -> float | None:
        """Return the value of the one point with these attributes, None if there is none."""
        metric = self.metrics.get(name)
        if metric is None:
            return None
        points = metric.sum.data_points if metric.HasField("sum") else metric.gauge.data_points
        found = [
            point.as_double if point.HasField("as_double") else point.as_int
            for point in points
            if labels.items() <= {p.key: p.value.string_value for p in point.attributes}.items()
        ]
        assert len(found) <= 1, (name, labels)
        return found[0] if found else None


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.status == 200:
            self.server.take(self.path, body)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Serve on a free port."""
    with Receiver() as receiver:
        serving = threading.Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            serving.join()
