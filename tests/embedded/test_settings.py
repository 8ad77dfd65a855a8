"""What a cluster can be told, and what is refused before anything starts."""

from pathlib import Path

import pytest

from pocketmq import Cluster
from pocketmq.embedded import settings
from pocketmq.errors import InvalidInput


def test_settings_become_text_as_rocketmq_writes_it() -> None:
    config: dict[str, str | int | bool]
    config = {"autoCreateTopicEnable": False, "defaultTopicQueueNums": 4, "regionId": "eu"}
    assert settings.cluster_config(config) == {
        "autoCreateTopicEnable": "false",
        "defaultTopicQueueNums": "4",
        "regionId": "eu",
    }


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            {"autoCreateTopicEnabled": True},
            (
                "unknown broker setting 'autoCreateTopicEnabled'; "
                "did you mean autoCreateTopicEnable?"
            ),
        ),
        ({"x": 1}, "unknown broker setting 'x'"),
        (
            {"listenPort": 1},
            "listenPort cannot be set here: the cluster sets it for each broker",
        ),
        (
            {"autoCreateTopicEnable": "maybe"},
            "autoCreateTopicEnable must be true or false, not 'maybe'",
        ),
        (
            {"defaultTopicQueueNums": "many"},
            "defaultTopicQueueNums must be a number from 1 to 65536, not 'many'",
        ),
        (
            {"diskMaxUsedSpaceRatio": 0},
            "invalid setting diskMaxUsedSpaceRatio=0: must be a number from 10 to 100",
        ),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_starts(
    config: dict[str, str | int | bool], told: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        Cluster(config=config)
    assert str(caught.value) == told


@pytest.mark.parametrize("brokers", [0, -1, 65])
def test_a_cluster_has_at_least_one_broker_and_not_too_many(brokers: int) -> None:
    with pytest.raises(InvalidInput, match=f"a cluster must have 1 to 64 brokers, not {brokers}"):
        Cluster(brokers)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_is_a_port(port: int) -> None:
    with pytest.raises(InvalidInput, match=f"{port} is not a port"):
        Cluster(port=port)
    with pytest.raises(InvalidInput, match=f"{port} is not a port"):
        settings.ClusterSettings(broker_port=port)


def test_broker_names_are_the_same_at_every_start() -> None:
    assert settings.ClusterSettings(brokers=3).names == ["broker-0", "broker-1", "broker-2"]


def test_a_java_brokers_file_counts_for_less_than_options(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("# mine\nbrokerName = b\nlistenPort=1\nmappedFileSizeConsumeQueue=2\n")
    properties = settings.broker_properties(settings.read_config_file(file), {"listenPort": "2"})
    assert properties == {"bindAddress": "127.0.0.1", "brokerName": "b", "listenPort": "2"}
    assert "ignoring unknown broker setting mappedFileSizeConsumeQueue" in caplog.text


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no\.conf: No such file"):
        settings.read_config_file(tmp_path / "no.conf")
    (tmp_path / "bad.conf").write_bytes(b"\xff")
    with pytest.raises(InvalidInput, match=r"bad\.conf: not UTF-8"):
        settings.read_config_file(tmp_path / "bad.conf")
    assert settings.read_config_file(None) == {}


def test_a_name_servers_settings_are_checked() -> None:
    assert settings.nameserver_config({"orderMessageEnable": "true"}).order_message_enable
    with pytest.raises(InvalidInput, match="unknown name server setting 'x'"):
        settings.nameserver_config({"x": "1"})
