"""Clusters with TLS and users: all parts speak it, and the cluster's own requests are signed."""

import json
import logging
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from pocketmq.embedded.listening import warn_if_open
from pocketmq.embedded.settings import Setting
from pocketmq.protocol import RequestCode
from pocketmq.protocol.signature import SigningUser, sign
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


def test_rules_for_users_whose_signatures_go_unverified_are_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Cluster(config={"authorizationEnabled": "true", "initAuthenticationUser": ROOT}):
        pass
    assert "any client can claim to be any user; set authenticationEnabled=true" in caplog.text


def test_who_is_asked_needs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_if_open("0.0.0.0", guarded=True)
        assert caplog.records == []
        warn_if_open("0.0.0.0")
        assert "without access control" in caplog.text


@pytest.mark.parametrize("in_process", [True, False])
def test_the_name_server_of_a_cluster_with_users_takes_orders_from_super_users_only(
    in_process: bool,
) -> None:
    config: dict[str, Setting] = {"authenticationEnabled": True, "initAuthenticationUser": ROOT}
    wipe = (RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": "broker-0"})
    with Cluster(config=config, in_process=in_process) as cluster:
        cluster.create_topic("orders", 4)
        with WireClient(cluster.address) as stranger:
            answer = stranger.ask(*wipe)
            assert answer.code == 16
            assert str(answer.remark).endswith("the request is not signed")
            assert stranger.ask(RequestCode.GET_BROKER_CLUSTER_INFO).code == 0
            code, fields = wipe
            signed = dict(fields)
            sign(SigningUser("root", b"secret"), code, signed, b"")
            assert stranger.ask(code, signed).code == 0
        cluster.restart("broker-0")


def test_admins_of_an_access_file_are_super_users_of_the_name_server(tmp_path: Path) -> None:
    file = tmp_path / "acl.json"
    accounts = [
        {"accessKey": "admin-account", "secretKey": "12345678", "admin": True},
        {"accessKey": "plain-account", "secretKey": "12345678", "defaultTopicPerm": "PUB|SUB"},
    ]
    file.write_text(json.dumps({"accounts": accounts}))
    with (
        Cluster(config={"aclEnable": True, "aclFile": str(file)}) as cluster,
        WireClient(cluster.address) as peer,
    ):
        for name, code in (("plain-account", 16), ("admin-account", 0)):
            fields = {"brokerName": "broker-0"}
            user = SigningUser(name, b"12345678")
            sign(user, RequestCode.WIPE_WRITE_PERM_OF_BROKER, fields, b"")
            answer = peer.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, fields)
            assert answer.code == code, name


def test_a_cluster_whose_name_server_lets_only_users_read_serves_them(tmp_path: Path) -> None:
    users = tmp_path / "users.json"
    users.touch(mode=0o600)
    users.write_text('[{"username":"alice","password":"hers"}]')
    config: dict[str, Setting] = {
        "authenticationEnabled": True,
        "readAuthenticationEnabled": True,
        "authenticationUsersFile": str(users),
    }
    with (
        Cluster(config=config) as cluster,
        WireClient(cluster.address) as peer,
    ):
        assert peer.ask(RequestCode.GET_BROKER_CLUSTER_INFO).code == 16
        fields: dict[str, str] = {}
        sign(SigningUser("alice", b"hers"), RequestCode.GET_BROKER_CLUSTER_INFO, fields, b"")
        assert peer.ask(RequestCode.GET_BROKER_CLUSTER_INFO, fields).code == 0
