"""Admin commands against a name server with access control sign as the user they are given."""

import re
from collections.abc import Iterator

import pytest

from pocketmq import Cluster
from pocketmq.embedded.settings import Setting
from tests.cli.admin_desk import Desk

ROOT = '{"username":"root","password":"secret"}'

COMMANDS = [
    ["wipeWritePerm", "-b", "broker-0", "--yes"],
    ["addWritePerm", "-b", "broker-0"],
    ["updateKvConfig", "-s", "n", "-k", "k", "-v", "v"],
    ["deleteKvConfig", "-s", "n", "-k", "k", "--yes"],
    ["updateOrderConf", "-t", "orders", "-v", "broker-0:4", "-m", "put"],
    ["updateOrderConf", "-t", "orders", "-m", "delete"],
    ["updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "true"],
    ["getNamesrvConfig"],
    ["deleteTopic", "-t", "orders", "-c", "DefaultCluster", "--yes"],
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config: dict[str, Setting] = {"authenticationEnabled": True, "initAuthenticationUser": ROOT}
    with Cluster(config=config) as running:
        running.create_topic("orders", 4)
        yield running


def test_each_command_is_refused_unsigned_and_works_signed(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(cluster, capsys)
    for command in COMMANDS:
        monkeypatch.delenv("POCKETMQ_ACCESS_KEY", raising=False)
        monkeypatch.delenv("POCKETMQ_SECRET_KEY", raising=False)
        code, _, err = desk.ends(*command)
        assert code != 0, command
        assert re.search("signature of a super user|username cannot be null", err), (command, err)
        monkeypatch.setenv("POCKETMQ_ACCESS_KEY", "root")
        monkeypatch.setenv("POCKETMQ_SECRET_KEY", "secret")
        code, out, err = desk.ends(*command)
        assert (code, err) == (0, ""), command
        assert "secret" not in out


def test_the_right_to_a_group_is_enough_for_one_that_never_had_a_member(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it exists is then unknown: to list groups is a right on the cluster."""
    config: dict[str, Setting] = {
        "authenticationEnabled": True, "authorizationEnabled": True, "initAuthenticationUser": ROOT
    }  # fmt: skip
    monkeypatch.setenv("POCKETMQ_ACCESS_KEY", "root")
    monkeypatch.setenv("POCKETMQ_SECRET_KEY", "secret")
    with Cluster(config=config) as cluster:
        desk = Desk(cluster, capsys)
        for line in (
            "createUser -c DefaultCluster -u ann -p ann-password",
            "createAcl -c DefaultCluster -s User:ann -r Group:billing -a Get -d Allow",
            "updateSubGroup -c DefaultCluster -g billing",
            "updateSubGroup -c DefaultCluster -g others",
        ):
            assert desk.ends(*line.split())[0] == 0, line
        monkeypatch.setenv("POCKETMQ_ACCESS_KEY", "ann")
        monkeypatch.setenv("POCKETMQ_SECRET_KEY", "ann-password")
        code, out, err = desk.ends("consumerConnection", "-g", "billing")
        assert (code, out, err) == (3, "", "pocketmq: no online member of group 'billing' found\n")
        code, out, err = desk.ends("consumerConnection", "-g", "others")
        assert (code, out) == (5, "")
        assert "no permission to access Group:others" in err


def test_a_refusing_broker_is_reported_and_the_others_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config: dict[str, Setting] = {
        "authenticationEnabled": True, "authorizationEnabled": True, "initAuthenticationUser": ROOT
    }  # fmt: skip
    monkeypatch.setenv("POCKETMQ_ACCESS_KEY", "root")
    monkeypatch.setenv("POCKETMQ_SECRET_KEY", "secret")
    with Cluster(brokers=2, config=config) as cluster:
        desk = Desk(cluster, capsys)
        knows, refuses = desk.brokers["broker-0"], desk.brokers["broker-1"]
        for line in (
            f"createUser -b {knows} -u ann -p ann-password",
            f"createAcl -b {knows} -s User:ann -r Cluster:* -a Get -d Allow",
        ):
            assert desk.ends(*line.split())[0] == 0, line
        monkeypatch.setenv("POCKETMQ_ACCESS_KEY", "ann")
        monkeypatch.setenv("POCKETMQ_SECRET_KEY", "ann-password")
        code, out, err = desk.ends("brokerStatus", "-c", "DefaultCluster")
    assert code == 6
    assert knows in out
    assert refuses not in out
    assert err.startswith(f"pocketmq: error from broker-1 at {refuses}: ")
    assert "User:ann is not found" in err
    assert err.count("\n") == 1
