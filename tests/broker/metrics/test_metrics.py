"""Metrics for Prometheus: names and labels of RocketMQ 5.x, over the smallest of HTTP servers."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pocketmq.broker.metrics.families import metrics_text
from pocketmq.errors import ListenFailed
from pocketmq.net import Address
from tests.broker.running import client, pull_fields, running, send_fields
from tests.broker.tables import Desk

SEND, PULL, COMMIT = 310, 11, 15


def value(text: str, name: str, **labels: str) -> float | None:
    """Find the one sample of a name with these labels, as Prometheus reads the text."""
    found = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert len(found) <= 1, (name, labels)
    return found[0] if found else None


async def scrape(address: Address, request: bytes = b"GET /metrics HTTP/1.1") -> str:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request + b"\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer.decode()


def shown(**settings: Any) -> Any:
    return running(metrics_exporter_type="PROM", metrics_prom_exporter_port=0, **settings)


async def test_what_goes_in_and_out_is_counted_by_topic_and_group() -> None:
    async with shown() as (broker, address), client(address) as peer:
        for _ in range(3):
            await peer.ask(SEND, send_fields("T"), b"x" * 10)
        await peer.ask(PULL, pull_fields("T", sysFlag="4", maxMsgNums="2"))
        text = await scrape(broker.metrics_address)
        head, _, text = text.partition("\r\n\r\n")
        assert head.startswith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4;")
        assert f"Content-Length: {len(text)}" in head
        assert "# TYPE rocketmq_messages_in_total counter\n" in text
        node = {"cluster": "DefaultCluster", "node_id": "broker-a", "node_type": "broker"}
        topic = node | {"topic": "T", "is_system": "false"}
        size = broker.state.store.log.tail
        assert value(text, "rocketmq_messages_in_total", **topic, message_type="normal") == 3
        assert value(text, "rocketmq_throughput_in_total", **topic) == size
        assert value(text, "rocketmq_messages_out_total", **topic, consumer_group="CG") == 2
        assert value(text, "rocketmq_throughput_out_total", **topic) == size * 2 // 3
        assert value(text, "rocketmq_topic_number") == len(broker.state.topics)
        assert value(text, "rocketmq_half_messages") == 0


async def test_the_lag_of_a_group_is_returned_in_messages_and_in_time() -> None:
    async with running() as (broker, address), client(address) as peer:
        for _ in range(3):
            await peer.ask(SEND, send_fields("T"), b"x")
        await peer.ask(PULL, pull_fields("T", sysFlag="4", maxMsgNums="2"))
        offset = {"consumerGroup": "CG", "topic": "T", "queueId": "0", "commitOffset": "1"}
        await peer.ask(COMMIT, offset)
        stored = broker.state.store.store_time(broker.state.store.make_queue("T", 0), 1)
        group = {"topic": "T", "consumer_group": "CG", "is_retry": "false"}
        text = metrics_text(broker.state)
        assert value(text, "rocketmq_consumer_lag_messages", **group) == 2
        assert value(text, "rocketmq_consumer_ready_messages", **group) == 1
        assert value(text, "rocketmq_consumer_inflight_messages", **group) == 1
        late = value(text, "rocketmq_consumer_lag_latency_milliseconds", **group)
        assert late is not None
        assert 0 <= late <= broker.state.clock.now_ms() - stored


async def test_other_doors_stay_closed() -> None:
    async with shown() as (broker, _):
        address = broker.metrics_address
        assert (await scrape(address, b"GET / HTTP/1.1")).startswith("HTTP/1.1 404 ")
        assert (await scrape(address, b"POST /metrics HTTP/1.1")).startswith("HTTP/1.1 405 ")
        head = await scrape(address, b"HEAD /metrics HTTP/1.1")
        assert head.startswith("HTTP/1.1 200 ")
        assert head.endswith("\r\n\r\n")
        assert await scrape(address, b"GET /" + b"x" * 70_000) == ""


async def test_a_port_that_is_taken_keeps_the_broker_from_starting() -> None:
    async with shown() as (broker, _):
        taken = broker.metrics_address.port
        with pytest.raises(ListenFailed, match=str(taken)):
            async with running(metrics_exporter_type="PROM", metrics_prom_exporter_port=taken):
                raise AssertionError("it started")


def test_labels_cannot_break_out_of_their_quotes() -> None:
    desk = Desk(broker_cluster_name='a"b\\c')
    assert 'cluster="a\\"b\\\\c"' in metrics_text(desk.state)


def test_brokers_that_show_no_metrics_do_not_load_the_library() -> None:
    """Start-up and memory of all others stay as they are."""
    code = (
        "import sys, pocketmq.broker, pocketmq.broker.broker, pocketmq.broker.assembly, pocketmq.cli\n"
        "print([name for name in sys.modules if name.startswith('prometheus_client')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
