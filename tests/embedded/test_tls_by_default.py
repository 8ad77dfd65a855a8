"""A cluster without a certificate: TLS and plain clients on one port, for all of its parts."""

import ssl
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq.embedded import Cluster
from pocketmq.errors import MQError
from pocketmq.net import parse_address
from pocketmq.net.self_signed import FILE_NAME
from tests.server_process import ServerProcess, children_of, wait_for

UNVERIFIED = mq.Tls(verify=False)
PATIENT = 30.0
"""Seconds for an answer: on a busy machine processes take long to load what makes keys."""


def exchanged(namesrv: str, tls: mq.Tls | None) -> bytes:
    """Send a message and read it back."""
    producer = mq.Producer(
        namesrv, group="p", tls=tls, request_timeout=PATIENT, send_timeout=PATIENT
    )
    with producer:
        producer.send(mq.Message("orders", b"42 EUR"))
    consumer = mq.PullConsumer(namesrv, group="c", tls=tls, request_timeout=PATIENT)
    with consumer.subscribe("orders"):
        return next(iter(consumer)).body


def test_every_part_shows_one_certificate_that_survives_a_restart(tmp_path: Path) -> None:
    seen: set[str] = set()
    for _ in range(2):
        with Cluster(2, data=tmp_path) as cluster:
            addresses = [cluster.address, cluster.grpc_address]
            addresses += [each.address for each in cluster.brokers.values()]
            for address in addresses:
                host, port = parse_address(address)
                seen.add(ssl.get_server_certificate((host, port)))
            assert exchanged(cluster.address, UNVERIFIED) == b"42 EUR"
    assert len(seen) == 1
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_a_cluster_in_memory_serves_tls_too() -> None:
    with Cluster() as cluster:
        assert exchanged(cluster.address, UNVERIFIED) == b"42 EUR"


def test_without_the_test_mode_there_is_no_tls() -> None:
    with Cluster(config={"tls.test.mode.enable": False}) as cluster:
        with pytest.raises(MQError):
            exchanged(cluster.address, UNVERIFIED)
        assert exchanged(cluster.address, None) == b"42 EUR"


def test_plain_clients_pay_nothing(tmp_path: Path) -> None:
    """No key is made and no package for it loaded, by the processes of a real cluster."""
    with ServerProcess("up", "--port", "0", "--data", str(tmp_path)) as cluster:
        pids = [cluster.process.pid, *children_of(cluster.process.pid)]
        assert exchanged(cluster.namesrv, None) == b"42 EUR"
        assert not any(map(makes_keys, pids))
        assert not (tmp_path / FILE_NAME).exists()
        assert exchanged(cluster.namesrv, UNVERIFIED) == b"42 EUR"
        assert all(map(makes_keys, pids))
        wait_for(lambda: "self-signed certificate" in cluster.errors(), "the log line")


def makes_keys(pid: int) -> bool:
    """Whether a process has loaded what makes keys."""
    return "cryptography" in Path(f"/proc/{pid}/maps").read_text()
