"""Adaptive blocking producers on real clusters: threads share what they learn of brokers."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.balance.producer import adaptive as rules
from pocketmq.embedded import Cluster
from pocketmq.errors import SendFailed
from pocketmq.model import Message
from tests.server_process import wait_for


def adaptive(address: str) -> mq.Producer:
    return mq.Producer(address, group="shop", queue_choice="adaptive", send_timeout=30.0)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a try 4 s, not up to one: a broker that only waits for a processor is not silent."""
    for name in ("SHORTEST_TRY", "LONGEST_TRY"):
        monkeypatch.setattr(rules, name, 4.0)


def all_used(producer: mq.Producer, topic: str, count: int) -> bool:
    """Send some; return whether all brokers got one of them."""
    receipts = [producer.send(Message(topic, b"x")) for _ in range(20)]
    return len({receipt.queue.broker_name for receipt in receipts}) == count


def test_a_killed_broker_costs_no_error_and_is_used_when_it_is_back(tmp_path: Path) -> None:
    with Cluster(brokers=2, data=tmp_path) as cluster:
        topic = cluster.create_topic("orders", queues=2)
        with adaptive(cluster.address) as producer:
            wait_for(lambda: all_used(producer, topic, 2), "both brokers to be used")
            cluster.kill("broker-1")
            receipts = [producer.send(Message(topic, b"x")) for _ in range(30)]
            receipts += [producer.submit(Message(topic, b"x")).result(30) for _ in range(30)]
            assert {receipt.queue.broker_name for receipt in receipts} == {"broker-0"}
            cluster.restart("broker-1")
            wait_for(lambda: all_used(producer, topic, 2), "the broker to be used again")


@pytest.mark.usefixtures("patient")
def test_a_silent_broker_costs_no_error_and_threads_learn_it_from_each_other() -> None:
    with Cluster(brokers=2, faults=True) as cluster:
        topic = cluster.create_topic("orders", queues=2)
        with adaptive(cluster.address) as producer:
            wait_for(lambda: all_used(producer, topic, 2), "both brokers to be used")
            cluster.partition("broker-1")
            stored: list[str] = []
            errors: list[SendFailed] = []

            def send() -> None:
                try:
                    for _ in range(30):
                        receipt = producer.send(Message(topic, b"x"))
                        stored.append(receipt.queue.broker_name)
                except SendFailed as error:
                    errors.append(error)

            run_all([send] * 6)
            assert errors == []
            assert Counter(stored) == {"broker-0": 180}
            faults = producer._client.sending.faults
            sick = faults.health()[1]
            assert (sick.broker, sick.available) == ("broker-1", False)
            assert 1 <= sick.unanswered <= 6 + 2  # one for each thread, and what began with them
            cluster.heal("broker-1")
            wait_for(lambda: all_used(producer, topic, 2), "the broker to be used again")


@pytest.mark.usefixtures("patient")
def test_a_broker_process_that_is_stopped_costs_no_error_and_is_used_when_it_goes_on() -> None:
    with Cluster(brokers=2, in_process=False) as cluster:
        topic = cluster.create_topic("orders", queues=2)
        pid = cluster.brokers["broker-1"].pid
        assert pid is not None
        with adaptive(cluster.address) as producer:
            wait_for(lambda: all_used(producer, topic, 2), "both brokers to be used")
            os.kill(pid, signal.SIGSTOP)
            try:
                receipts = [producer.send(Message(topic, b"x")) for _ in range(20)]
                submitted = [producer.submit(Message(topic, b"x")) for _ in range(20)]
                receipts += [each.result(30) for each in submitted]
            finally:
                os.kill(pid, signal.SIGCONT)
            assert {receipt.queue.broker_name for receipt in receipts} == {"broker-0"}
            wait_for(lambda: all_used(producer, topic, 2), "the broker to be used again")


def test_chosen_queues_stay_chosen() -> None:
    with Cluster(brokers=2) as cluster:
        topic = cluster.create_topic("orders", queues=2)
        with adaptive(cluster.address) as producer:
            for queue in producer.queues(topic):
                assert producer.send(Message(topic, b"x"), queue=queue).queue == queue
            keyed = [producer.send(Message(topic, b"x"), ordering_key="A17") for _ in range(8)]
            assert len({receipt.queue for receipt in keyed}) == 1


def test_threads_that_send_at_once_leave_nothing_in_flight() -> None:
    with Cluster(brokers=3) as cluster:
        topic = cluster.create_topic("orders", queues=2)
        with adaptive(cluster.address) as producer:
            run_all([lambda: [producer.send(Message(topic, b"x")) for _ in range(100)]] * 8)
            publication = producer._client.sending.publishing.ready(topic)
            assert publication is not None
            assert publication.by_broker is not None
            places = publication.by_broker.all
            assert [len(each.record.in_flight) for each in places] == [0, 0, 0]


def run_all(work: list[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60.0
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            pytest.fail("a thread does not end")
