"""Direct sends are signed, named and encrypted as all others are."""

import threading
from pathlib import Path
from typing import Any

import pytest

import pocketmq as mq
from pocketmq import Cluster, Message
from pocketmq.embedded.settings import Setting
from pocketmq.errors import ClientClosed, SendFailed
from tests.net.certificates import make_certificates
from tests.server_process import wait_for

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
        with mq.Producer(
            cluster.address, group="shop", credentials=right, send_timeout=30.0
        ) as producer:
            assert producer.send(Message("orders", b"x")).ok
            assert producer.send_batch([Message("orders", b"x")] * 3).ok
            assert producer.submit(Message("orders", b"x")).result(30).ok
        wrong = mq.Credentials(access_key="root", secret_key="guessed-12")
        with (
            mq.Producer(
                cluster.address,
                group="shop",
                credentials=wrong,
                instance_name="wrong",
                send_timeout=30.0,
            ) as producer,
            pytest.raises(SendFailed) as caught,
        ):
            producer.send(Message("orders", b"x"))
        assert caught.value.code == 16


def test_a_direct_send_goes_to_its_namespace(cluster: Cluster) -> None:
    cluster.create_topic("shop%orders", 2)
    with mq.Producer(cluster.address, group="g", namespace="shop", send_timeout=30.0) as producer:
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


def test_a_caller_verifies_certificates_on_its_own_connections(tmp_path: Path) -> None:
    """The loop's connections are fine; the certificate is replaced before the caller's are made."""
    certificates = make_certificates(tmp_path / "right")
    others = make_certificates(tmp_path / "wrong")
    config: dict[str, Setting] = {
        "tls.server.mode": "enforcing",
        "tls.server.certPath": certificates.server,
        "tls.server.keyPath": certificates.server_key,
    }
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", 4)
        root = tmp_path / "root.pem"
        root.write_bytes(Path(certificates.root).read_bytes())
        with mq.Producer(
            cluster.address,
            group="shop",
            tls=mq.Tls(ca=str(root)),
            send_timeout=10.0,
            request_timeout=10.0,
            retries=0,
        ) as producer:
            producer.queues("orders")
            root.write_bytes(Path(others.root).read_bytes())
            with pytest.raises(SendFailed, match="certificate"):
                producer.send(Message("orders", b"x"))
            root.write_bytes(Path(certificates.root).read_bytes())
            wait_for(lambda: _sends(producer), "the right certificate to count")
            for _ in range(3):
                assert producer.send(Message("orders", b"y")).ok
            assert producer.send_batch([Message("orders", b"z")] * 3).ok


def _sends(producer: mq.Producer) -> bool:
    try:
        return producer.send(Message("orders", b"x")).ok
    except SendFailed:
        return False


def test_pops_and_transactions_use_tls_too(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    config: dict[str, Setting] = {
        "tls.server.mode": "enforcing",
        "tls.server.certPath": certificates.server,
        "tls.server.keyPath": certificates.server_key,
    }
    options: dict[str, Any] = {"tls": mq.Tls(ca=certificates.root), "request_timeout": 30.0}
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", 1)
        with (
            mq.Producer(cluster.address, group="shop", send_timeout=30.0, **options) as producer,
            mq.PopConsumer(cluster.address, group="billing", **options) as consumer,
        ):
            consumer.subscribe("orders")
            consumer.receive(timeout=0.0)
            receipt = producer.send_in_transaction(
                Message("orders", b"x"), lambda _, __: mq.TransactionState.COMMIT
            )
            assert receipt.state is mq.TransactionState.COMMIT
            (message,) = consumer.receive(timeout=30)
            consumer.ack(message)
            ended: list[BaseException] = []

            def receive() -> None:
                try:
                    consumer.receive(timeout=60)
                except ClientClosed as error:
                    ended.append(error)

            waiting = threading.Thread(target=receive)
            waiting.start()
            in_flight = consumer._pops.connections._waiting  # type: ignore[union-attr]
            wait_for(lambda: len(in_flight) == 1, "the receive to wait")
            consumer.close()
            waiting.join(20)
            assert len(ended) == 1
