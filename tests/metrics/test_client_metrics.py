"""Prometheus metrics of clients on a real cluster, as a scrape shows them."""

import asyncio
import gc
import threading

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

import pocketmq as mq
from pocketmq import Cluster, Message, aio
from pocketmq.embedded.aio import Cluster as AsyncCluster
from pocketmq.errors import ClientClosed
from pocketmq.metrics import ClientMetrics
from tests.loops import until
from tests.server_process import wait_for

WAIT = 20.0


class Scrapes:
    """A registry, read as Prometheus reads it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = ClientMetrics(self.registry)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def sent(self, outcome: str) -> float | None:
        name = "pocketmq_sent_messages_total"
        return self.value(name, group="shop", topic="orders", outcome=outcome)

    def handled(self, outcome: str) -> float | None:
        name = "pocketmq_handled_messages_total"
        return self.value(name, group="billing", topic="orders", outcome=outcome)

    def of_consumer(self, name: str, group: str = "billing") -> float | None:
        return self.value(f"pocketmq_{name}", group=group, topic="orders")


def test_sends_handler_calls_retries_and_queues_are_exported() -> None:
    scrapes, go, tried = Scrapes(), threading.Event(), threading.Semaphore(0)

    def handle(message: mq.ReceivedMessage) -> None:
        tried.release()
        go.wait(WAIT)
        if message.body == b"poison" and message.reconsume_times == 0:
            raise ValueError("no price")
        if message.body == b"later" and message.reconsume_times == 0:
            raise mq.RetryLater(1)

    config = {"messageDelayLevel": " ".join(["0s"] * 18)}
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", queues=2)
        producer = mq.Producer(
            cluster.address, group="shop", interceptors=[scrapes.metrics.sends], send_timeout=30.0
        )
        with pytest.raises(ClientClosed):
            producer.send(Message("orders", b"too early"))
        with producer:
            producer.send_batch([Message("orders", b"1"), Message("orders", b"2")])
            producer.send(Message("orders", b"poison"))
            producer.submit(Message("orders", b"later")).result(WAIT)
            wait_for(lambda: scrapes.sent("ok") == 4, "the end of the submitted one")
        consumer = mq.PushConsumer(
            cluster.address,
            group="billing",
            consume_from="first",
            profile="4.x",
            threads=1,
            route_interval=0.05,
            interceptors=[scrapes.metrics.handlers],
        ).subscribe("orders", "*", handle)
        assert consumer.lag() == {}
        scrapes.metrics.watch(consumer)
        assert scrapes.of_consumer("consumer_lag_messages") is None
        with consumer:
            wait_for(lambda: scrapes.of_consumer("consumer_lag_messages") == 4, "the lag")
            assert scrapes.of_consumer("consumer_cached_messages") == 4
            assert scrapes.of_consumer("consumer_queues") == 2
            assert {queue.topic for queue in consumer.lag()} == {"orders"}
            assert tried.acquire(timeout=WAIT)
            wait_for(lambda: scrapes.of_consumer("handlers_in_flight") == 1, "the call")
            go.set()
            for _ in range(5):
                assert tried.acquire(timeout=WAIT)
            wait_for(lambda: scrapes.of_consumer("consumer_lag_messages") == 0, "the end of it")
            assigned = scrapes.value("pocketmq_consumer_queues_assigned_total", group="billing")
            assert assigned == 2
    assert scrapes.of_consumer("consumer_lag_messages") is None, "a closed consumer has no queues"
    assert (scrapes.sent("ok"), scrapes.sent("error")) == (4, 1)
    durations = "pocketmq_send_duration_seconds_count"
    assert scrapes.value(durations, group="shop", topic="orders") == 4
    in_flight = "pocketmq_sends_in_flight"
    assert scrapes.value(in_flight, group="shop", topic="orders") == 0
    outcomes = [scrapes.handled(word) for word in ("ok", "error", "retry")]
    assert outcomes == [4, 1, 1]
    assert scrapes.of_consumer("retried_messages_total") == 2
    assert scrapes.of_consumer("handler_duration_seconds_count") == 6
    assert scrapes.of_consumer("message_age_seconds_count") == 6
    assert scrapes.of_consumer("handlers_in_flight") == 0
    assert scrapes.value("pocketmq_consumer_queues_revoked_total", group="billing") == 2
    changed = "pocketmq_consumer_rebalances_total"
    assert scrapes.value(changed, group="billing", change="revoked") == 1
    assert b"# TYPE pocketmq_consumer_lag_messages gauge" in generate_latest(scrapes.registry)
    del consumer
    gc.collect()
    assert len(scrapes.metrics._queues._consumers) == 0, "metrics do not keep a consumer alive"


async def test_an_asyncio_consumer_that_is_behind_shows_it_to_a_scrape_of_another_thread() -> None:
    scrapes, go = Scrapes(), asyncio.Event()

    async def handle(message: aio.ReceivedMessage) -> None:
        await go.wait()

    async with AsyncCluster() as cluster:
        await cluster.create_topic("ns%orders", 1)
        async with aio.Producer(cluster.address, group="shop", namespace="ns") as producer:
            await producer.send_batch([Message("orders", b"%d" % n) for n in range(100)])
        consumer = aio.PushConsumer(
            cluster.address,
            group="slow",
            consume_from="first",
            profile="4.x",
            threads=1,
            pull_batch=10,
            limits=aio.PullLimits(count=20),
            namespace="ns",
            interceptors=[scrapes.metrics.handlers],
        ).subscribe("orders", "*", handle)
        scrapes.metrics.watch(consumer)
        async with consumer:

            def lag() -> float | None:
                return scrapes.of_consumer("consumer_lag_messages", "slow")

            def cached() -> float:
                return scrapes.of_consumer("consumer_cached_messages", "slow") or 0.0

            await until(lambda: cached() >= 20, "a full cache")
            assert lag() == 100
            assert await asyncio.to_thread(lag) == 100
            assert cached() < 100, "the cache is limited, the lag is not"
            go.set()
            await until(lambda: lag() == 0, "the end of it")
