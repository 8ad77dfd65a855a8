"""Options: Java's defaults, and no for what can never work."""

import math
from typing import Any

import pytest

from pocketmq.client import ClientOptions, Credentials
from pocketmq.errors import InvalidInput


def test_the_defaults_are_javas() -> None:
    options = ClientOptions()
    assert (options.request_timeout, options.route_interval) == (3.0, 30.0)
    assert (options.heartbeat_first_after, options.heartbeat_interval) == (1.0, 30.0)
    assert (options.persist_first_after, options.persist_interval) == (10.0, 5.0)
    assert (options.instance_name, options.profile.line) == ("DEFAULT", "5.x")
    assert not options.vip_channel
    assert not options.heartbeat_v2


@pytest.mark.parametrize(
    "wrong",
    [
        {"name_servers": "localhost"},
        {"name_servers": "a:1;b:notaport"},
        {"request_timeout": 0.0},
        {"request_timeout": -1.0},
        {"request_timeout": math.nan},
        {"route_interval": math.inf},
        {"heartbeat_interval": 30_000_000.0},
        {"heartbeat_first_after": -0.1},
        {"start_wait": -1.0},
        {"instance_name": " "},
        {"instance_name": "a\nb"},
        {"client_ip": ""},
        {"unit_name": "\t"},
    ],
    ids=str,
)
def test_what_can_never_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        ClientOptions(**wrong)


def test_secrets_are_not_shown() -> None:
    credentials = Credentials(access_key="me", secret_key="s3cret", security_token="t0ken")
    shown = repr(ClientOptions(credentials=credentials))
    assert "me" in shown
    assert "s3cret" not in shown
    assert "t0ken" not in shown


def test_credentials_are_whole() -> None:
    with pytest.raises(InvalidInput, match="need an access key and a secret key"):
        Credentials(access_key="me", secret_key="")


def test_differences_are_named() -> None:
    one = ClientOptions(name_servers="a:1", request_timeout=5.0)
    assert one.differences(ClientOptions(name_servers="b:1")) == ["name_servers", "request_timeout"]
    assert one.differences(one) == []
