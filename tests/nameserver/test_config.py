import pytest

from pocketmq.errors import InvalidInput, NoPermission
from pocketmq.nameserver.config import NameServerConfig


def test_settings_go_through_text_and_back() -> None:
    config = NameServerConfig(order_message_enable=True, wait_seconds_for_service=7)
    assert NameServerConfig().updated(config.properties()) == config
    assert config.properties()["orderMessageEnable"] == "true"
    assert config.properties()["waitSecondsForService"] == "7"


def test_names_that_are_no_settings_are_passed_over() -> None:
    config = NameServerConfig()
    assert config.updated({"defaultThreadPoolNums": "99", "order_message_enable": "x"}) == config


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("orderMessageEnable", "yes", "true or false"),
        ("orderMessageEnable", "", "true or false"),
        ("waitSecondsForService", "soon", "a whole number"),
        ("waitSecondsForService", "-1", "a whole number"),
        ("waitSecondsForService", "0", "a whole number"),
        ("waitSecondsForService", "2147483648", "a whole number"),
        ("waitSecondsForService", "9" * 5000, "a whole number"),
        ("waitSecondsForService", "٣", "a whole number"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_name(
    name: str, value: str, advice: str
) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be {advice}.* not "):
        NameServerConfig().updated({name: value})


@pytest.mark.parametrize(
    "name", ["configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome", "mine"]
)
def test_black_listed_settings_cannot_be_updated(name: str) -> None:
    config = NameServerConfig(config_black_list="mine;others")
    with pytest.raises(NoPermission, match="black list"):
        config.check_updatable({"orderMessageEnable": "true", name: "x"})
    config.check_updatable({"orderMessageEnable": "true"})


def test_the_reading_of_values_is_javas_where_java_reads_them() -> None:
    config = NameServerConfig().updated(
        {"orderMessageEnable": " TRUE ", "waitSecondsForService": "010"}
    )
    assert config.order_message_enable
    assert config.wait_seconds_for_service == 10
