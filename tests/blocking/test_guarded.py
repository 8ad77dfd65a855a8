"""Direct sends are signed, named and encrypted as all others are."""

import threading
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq import Cluster, Message
from pocketmq.embedded.settings import Setting
from pocketmq.errors import SendFailed
from tests.net.certificates import make_certificates

ROOT = '{"username":"root","password":"secret"}'


def test_a_direct_send_is_signed() -> None:
    config: dict[str, Setting] = {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "initAuthenticationUser": ROOT,
    }
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", 4)
        right = mq.Credentials(access_key="root", secret_key="secret")
        with mq.Producer(cluster.address, group="shop", credentials=right) as producer:
            assert producer.send(Message("orders", b"x")).ok
            assert producer.send_batch([Message("orders", b"x")] * 3).ok
            assert producer.submit(Message("orders", b"x")).result(30).ok
        wrong = mq.Credentials(access_key="root", secret_key="guessed-12")
        with (
            mq.Producer(
                cluster.address, group="shop", credentials=wrong, instance_name="wrong"
            ) as producer,
            pytest.raises(SendFailed) as caught,
        ):
            producer.send(Message("orders", b"x"))
        assert caught.value.code == 16


def test_a_direct_send_goes_to_its_namespace(cluster: Cluster) -> None:
    cluster.create_topic("shop%orders", 2)
    with mq.Producer(cluster.address, group="g", namespace="shop") as producer:
        receipt = producer.send(Message("orders", b"x"))
        assert receipt.queue.topic == "orders"
        assert {queue.topic for queue in producer.queues("orders")} == {"orders"}
    with mq.PullConsumer(cluster.address, group="g", namespace="shop") as consumer:
        consumer.assign([receipt.queue])
        consumer.seek_to_begin(receipt.queue)
        assert [message.topic for message in consumer.poll(30)] == ["orders"]


def test_with_tls_nothing_leaves_unencrypted(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    config: dict[str, Setting] = {
        "tls.server.mode": "enforcing",
        "tls.server.certPath": certificates.server,
        "tls.server.keyPath": certificates.server_key,
    }
    tls = mq.Tls(ca=certificates.root)
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", 4)
        with mq.Producer(
            cluster.address, group="shop", tls=tls, send_timeout=30.0, request_timeout=30.0
        ) as producer:
            assert producer.send(Message("orders", b"x")).ok
            assert producer.submit(Message("orders", b"x")).result(30).ok
            outcomes: list[bool] = []
            other = threading.Thread(
                target=lambda: outcomes.append(producer.send(Message("orders", b"y")).ok)
            )
            other.start()
            other.join(30)
            assert outcomes == [True]
