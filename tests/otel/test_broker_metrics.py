"""A broker's metrics in OpenTelemetry: real exporters, and a collector of the test's own."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the extra otel is missing")

from pocketmq.broker.metrics import otel_export
from pocketmq.errors import InvalidInput
from tests.broker.running import client, pull_fields, running, send_fields
from tests.loops import until
from tests.otel.receiver import Receiver, receiving
from tests.server_process import CommandProcess, wait_for

SEND, PULL, COMMIT = 310, 11, 15
NODE = {"cluster": "DefaultCluster", "node_id": "broker-a", "node_type": "broker"}


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiving() as taking:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", taking.url)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
        yield taking


async def begun_now(receiver: Receiver) -> None:
    """Wait for an export that began after this call.

    A broker serves clients while it gathers its metrics: the one that is under way may have the
    first of them from before a request, and the last from after it.
    """
    whole = receiver.exports + 2
    await until(lambda: receiver.exports >= whole, "an export", 30.0)


async def test_a_collector_gets_what_a_broker_measures_under_the_names_of_java(
    receiver: Receiver,
) -> None:
    async with (
        running(metrics_exporter_type="OTEL") as (broker, address),
        client(address) as peer,
    ):
        for _ in range(3):
            await peer.ask(SEND, send_fields("T"), b"x" * 2000)
        await peer.ask(PULL, pull_fields("T", sysFlag="4", maxMsgNums="2"))
        offset = {"consumerGroup": "CG", "topic": "T", "queueId": "0", "commitOffset": "1"}
        await peer.ask(COMMIT, offset)
        topic, size = NODE | {"topic": "T"}, broker.state.store.log.tail
        group = topic | {"consumer_group": "CG"}
        await begun_now(receiver)
        assert receiver.value("rocketmq_consumer_lag_messages", **group) == 2
        assert receiver.value("rocketmq_messages_in_total", **topic, message_type="normal") == 3
        assert receiver.value("rocketmq_throughput_in_total", **topic) == size
        assert receiver.value("rocketmq_messages_out_total", **group) == 2
        assert receiver.value("rocketmq_consumer_inflight_messages", **group) == 1
        held = sum(each.end - each.start for each in broker.state.store.log.segments)
        assert receiver.value("rocketmq_storage_size", **NODE, storage_medium="disk") == held
        assert receiver.value("rocketmq_topic_number", **NODE) == len(broker.state.topics)
        assert receiver.metrics["rocketmq_consumer_lag_latency"].unit == "milliseconds"
        assert receiver.metrics["rocketmq_storage_flush_behind_bytes"].unit == "bytes"
        assert receiver.resource["service.name"] == "pocketmq-broker"
        assert receiver.resource["service.instance.id"] == "broker-a"


async def test_sizes_are_a_histogram_and_counts_are_sums_since_the_start(
    receiver: Receiver,
) -> None:
    async with (
        running(metrics_exporter_type="OTEL") as (broker, address),
        client(address) as peer,
    ):
        await peer.ask(SEND, send_fields("T"), b"x")
        await peer.ask(SEND, send_fields("T"), b"x" * 2000)
        size = broker.state.store.log.tail
        await begun_now(receiver)
        assert receiver.value("rocketmq_messages_in_total", topic="T") == 2
        (sizes,) = receiver.metrics["rocketmq_message_size"].histogram.data_points
        assert list(sizes.bucket_counts) == [1, 1, 0, 0, 0, 0, 0]
        assert list(sizes.explicit_bounds) == [1024, 4096, 512 << 10, 1 << 20, 2 << 20, 4 << 20]
        assert (sizes.count, sizes.sum) == (2, size)
        counted = receiver.metrics["rocketmq_messages_in_total"].sum
        assert counted.is_monotonic
        began = broker.state.booted_ms * 1_000_000
        assert {point.start_time_unix_nano for point in counted.data_points} == {began}


async def test_what_happened_since_the_last_export_is_exported_at_the_end(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "3600000")
    monkeypatch.setattr(otel_export, "_LAST", 60.0)  # its thread may have to wait for a processor
    async with (
        running(metrics_exporter_type="OTEL") as (_, address),
        client(address) as peer,
    ):
        await peer.ask(SEND, send_fields("T"), b"x")
        assert not receiver.metrics
    assert receiver.value("rocketmq_messages_in_total", topic="T") == 1


async def test_a_collector_that_fails_is_logged_once_and_its_return_too(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.status = 400
    caplog.set_level("INFO", "pocketmq.broker")

    def lines(text: str) -> int:
        return sum(text in record.getMessage() for record in caplog.records)

    async with running(metrics_exporter_type="OTEL"):
        await until(lambda: lines("Failed to export") > 2, "failures")
        assert lines("metrics export failed") == 1
        receiver.status = 200
        await until(lambda: lines("metrics exported again") == 1, "a success")


async def test_a_dead_collector_does_not_keep_a_broker_from_stopping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
    held: list[asyncio.StreamWriter] = []
    deaf = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    port = deaf.sockets[0].getsockname()[1]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
    # So long would the exporter itself wait.
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600")
    async with asyncio.timeout(60):
        async with running(metrics_exporter_type="OTEL"):
            await until(lambda: held, "an export", 30.0)
    deaf.close()
    for each in held:
        each.transport.abort()


@pytest.mark.parametrize(
    ("variables", "settings", "told"),
    [
        ({"OTEL_METRICS_EXPORTER": "prometheus"}, {}, "use --metrics-port"),
        ({"OTEL_METRICS_EXPORTER": "nosuch"}, {}, "installed: console"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, {}, "must be http/protobuf or grpc"),
        ({"OTEL_METRIC_EXPORT_INTERVAL": "0"}, {}, "not a number of ms"),
        ({}, {"metrics_exporter_type": "OTLP_GRPC"}, "needs metricsGrpcExporterTarget"),
    ],
)
async def test_a_wrong_choice_keeps_the_broker_from_starting(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    settings: dict[str, Any],
    told: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput, match=told):
        async with running(**({"metrics_exporter_type": "OTEL"} | settings)):
            raise AssertionError("it started")


def test_the_command_exports_with_one_flag(receiver: Receiver) -> None:
    with CommandProcess("up", "--port", "0", "--memory", "--otel"):
        wait_for(
            lambda: receiver.value("rocketmq_broker_permission", node_type="broker") == 6,
            "the metrics of a broker",
        )


def test_brokers_without_metrics_do_not_load_opentelemetry() -> None:
    code = (
        "import sys, pocketmq.broker.broker, pocketmq.broker.assembly, pocketmq.cli.up\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
