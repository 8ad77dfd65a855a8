"""Options: Java's defaults, and no for what can never work."""

import math
from typing import Any

import pytest

from pocketmq.client.consumer_options import PullConsumerOptions, PushConsumerOptions
from pocketmq.client.options import ClientOptions, Credentials
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.errors import InvalidInput


def test_the_defaults_are_javas() -> None:
    options = ClientOptions()
    assert (options.request_timeout, options.route_interval) == (3.0, 30.0)
    assert (options.heartbeat_first_after, options.heartbeat_interval) == (1.0, 30.0)
    assert (options.persist_first_after, options.persist_interval) == (1.0, 5.0)
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


def test_a_producers_defaults_are_javas() -> None:
    options = ProducerOptions(group="shop")
    assert (options.send_timeout, options.retries, options.new_topic_queues) == (3.0, 2, 4)
    assert (options.compress_from, options.max_message_size) == (4096, 4194304)
    assert (options.template_topic, options.avoid_slow_brokers) == ("TBW102", False)


def test_a_producer_shares_batches_of_submitted_messages_unless_told_otherwise() -> None:
    options = ProducerOptions(group="shop")
    assert (options.linger, options.batch_bytes) == (None, 131072)
    assert ProducerOptions(group="shop", linger=0).linger == 0
    assert ProducerOptions(group="shop", batch_bytes=0).batch_bytes == 0


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        ({"linger": 5}, "5 ms are linger=0.005"),
        ({"linger": 1}, "less than 1, not 1"),
        ({"linger": -0.1}, "linger must be in seconds"),
        ({"linger": float("nan")}, "linger must be in seconds"),
        ({"linger": True}, "linger must be"),
        ({"linger": 0.5, "send_timeout": 0.5}, "less than send_timeout=0.5"),
        ({"linger": 0.005, "batch_bytes": 0}, "set batch_bytes"),
        ({"batch_bytes": -1}, "batch_bytes must be from 0"),
        ({"batch_bytes": 1.5}, "batch_bytes must be a whole number"),
    ],
    ids=str,
)
def test_what_cannot_be_a_shared_batch_is_refused_with_the_cure(
    wrong: dict[str, Any], cure: str
) -> None:
    with pytest.raises(InvalidInput, match=cure):
        ProducerOptions(group="shop", **wrong)


def test_a_push_consumers_defaults_are_javas() -> None:
    options = PushConsumerOptions(group="billing")
    assert options.handler_batch == 1
    assert (options.threads, options.max_reconsume_times, options.consume_timeout) == (20, -1, 900)
    assert (options.limits.count, options.limits.size_mib, options.limits.span) == (1000, 100, 2000)
    assert (options.model.name, options.strategy) == ("CLUSTERING", "AVG")
    assert options.consume_from.name == "CONSUME_FROM_LAST_OFFSET"
    assert options.client_rebalance


def test_how_much_a_push_consumer_pulls_depends_on_what_waits_unless_it_is_told() -> None:
    options = PushConsumerOptions(group="billing")
    assert (options.pull_batch, options.pull_batch_bytes) == (None, None)


def test_a_pull_consumers_defaults_are_javas() -> None:
    options = PullConsumerOptions(group="audit")
    assert (options.pull_batch, options.limits.total) == (10, 10000)
    assert (options.poll_timeout, options.auto_commit_interval) == (5.0, 5.0)
    assert (options.suspend, options.pull_timeout) == (20.0, 30.0)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (ProducerOptions, {"group": "DEFAULT_PRODUCER"}),
        (ProducerOptions, {"group": ""}),
        (ProducerOptions, {"send_timeout": 0.0}),
        (ProducerOptions, {"send_timeout_per_try": -1.0}),
        (ProducerOptions, {"retries": -1}),
        (ProducerOptions, {"max_message_size": 0}),
        (ProducerOptions, {"template_topic": "a b"}),
        (ProducerOptions, {"new_topic_queues": 0}),
        (PushConsumerOptions, {"group": "DEFAULT_CONSUMER"}),
        (PushConsumerOptions, {"pull_batch": 1025}),
        (PushConsumerOptions, {"handler_batch": 0}),
        (PushConsumerOptions, {"threads": 1001}),
        (PushConsumerOptions, {"max_reconsume_times": -2}),
        (PushConsumerOptions, {"pull_interval": -0.1}),
        (PullConsumerOptions, {"group": "a b"}),
        (PullConsumerOptions, {"auto_commit_interval": 0.5}),
        (PullConsumerOptions, {"pull_timeout": 10.0}),
    ],
    ids=str,
)
def test_members_refuse_what_java_refuses(kind: Any, wrong: dict[str, Any]) -> None:
    kind(group="fine")
    with pytest.raises(InvalidInput):
        kind(**{"group": "fine"} | wrong)
