"""Clusters with TLS and users: all parts speak it, and the cluster's own requests are signed."""

import logging
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from pocketmq.embedded.hosts import warn_if_open
from pocketmq.embedded.settings import Setting
from tests.net.certificates import make_certificates
from tests.wire_client import WireClient

ROOT = '{"username":"root","password":"secret"}'


@pytest.mark.parametrize("auth", ["none", "require"])
def test_all_parts_of_a_cluster_speak_tls_when_they_have_to(tmp_path: Path, auth: str) -> None:
    made = make_certificates(tmp_path)
    config: dict[str, Setting] = {
        "tls.server.mode": "enforcing",
        "tls.server.certPath": made.server,
        "tls.server.keyPath": made.server_key,
        "tls.server.need.client.auth": auth,
        "tls.server.trustCertPath": made.root,
    }
    with Cluster(config=config) as cluster:
        cluster.create_topic("orders", 4)
        (broker,) = cluster.brokers.values()
        for address in (cluster.address, broker.address):
            with WireClient(address) as plain, pytest.raises(ConnectionError):
                plain.ask(28)


def test_a_cluster_with_users_can_make_topics(tmp_path: Path) -> None:
    config: dict[str, Setting] = {
        "authenticationEnabled": True,
        "authorizationEnabled": True,
        "initAuthenticationUser": ROOT,
    }
    with Cluster(config=config, data=tmp_path) as cluster:
        cluster.create_topic("orders", 4)
        (broker,) = cluster.brokers.values()
        with WireClient(broker.address) as nobody:
            answer = nobody.ask(28)
            assert (answer.code, answer.remark) == (16, "username cannot be null.")
    (file,) = tmp_path.glob("*/meta.sqlite")
    assert file.stat().st_mode & 0o077 == 0  # passwords are in it


def test_who_is_asked_needs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_if_open("0.0.0.0", guarded=True)
        assert caplog.records == []
        warn_if_open("0.0.0.0")
        assert "without access control" in caplog.text
