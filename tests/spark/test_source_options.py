"""Options: read in any case, refused by name, secrets kept."""

from typing import Any

import pytest

from pocketmq.errors import OptionInvalid
from pocketmq.model import MessageQueue
from pocketmq.spark.attendance import TopicSelection
from pocketmq.spark.offsets import EARLIEST, LATEST, OffsetSpec
from pocketmq.spark.option_values import seconds, size, time_ms
from pocketmq.spark.source_options import source_options

DEEP = '{"a":' * 20_000 + "1" + "}" * 20_000
HERE = {"nameServer": "127.0.0.1:9876", "subscribe": "orders"}


def test_little_has_to_be_said() -> None:
    batch = source_options(HERE, stream=False)
    assert batch.topics == TopicSelection(("orders",))
    assert (batch.starting, batch.ending) == (OffsetSpec(EARLIEST), OffsetSpec(LATEST))
    assert source_options(HERE, stream=True).starting == OffsetSpec(LATEST)
    assert batch.reach.name_servers == "127.0.0.1:9876"
    assert batch.pulling.fail_on_data_loss


def test_names_count_in_any_case() -> None:
    given = {"NAMESERVER": "h:1", "Subscribe": "a, b", "startingoffsets": "latest"}
    read = source_options(given, stream=True)
    assert (read.topics.names, read.starting) == (("a", "b"), OffsetSpec(LATEST))


def test_the_environment_may_name_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMESRV_ADDR", "h:5")
    assert source_options({"subscribe": "a"}, stream=False).reach.name_servers == "h:5"
    monkeypatch.delenv("NAMESRV_ADDR")
    with pytest.raises(OptionInvalid, match="nameServer"):
        source_options({"subscribe": "a"}, stream=False)


def test_queues_can_be_assigned() -> None:
    given = {"nameServer": "h:1", "assign": '{"orders": {"broker-a": [0, 2]}}'}
    assert source_options(given, stream=True).topics.assigned == (
        MessageQueue("orders", "broker-a", 0),
        MessageQueue("orders", "broker-a", 2),
    )


AT = '{"orders": {"broker-a": {"0": %d}}}'


@pytest.mark.parametrize(
    ("more", "option", "reason"),
    [
        ({"subscrib": "x"}, "subscrib", "is unknown; did you mean 'subscribe'?"),
        ({"kafka.bootstrap.servers": "x"}, "kafka.bootstrap.servers", "is unknown"),
        ({"subscribePattern": "a.*"}, "subscribePattern", "cannot be combined with 'subscribe'"),
        (
            {"startingOffsets": "latest", "startingTimestamp": "5"},
            "startingTimestamp",
            "cannot be combined with",
        ),
        ({"tags": "a", "sql": "b = 1"}, "sql", "cannot be combined with 'tags'"),
        ({"sql": "b = = 1"}, "sql", "is invalid"),
        ({"subscribe": "a b"}, "subscribe", "invalid"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss", "must be true or false, not 'maybe'"),
        ({"minPartitions": "0"}, "minPartitions", "must be from 1"),
        ({"minPartitions": "two"}, "minPartitions", "must be a whole number"),
        ({"accessKey": "k"}, "accessKey", "requires option 'secretKey'"),
        ({"secretKey": "k"}, "secretKey", "requires option 'accessKey'"),
        ({"tlsCa": "ca.pem"}, "tlsCa", "requires option 'tls' to be true"),
        (
            {"namespace": "a", "namespaceV2": "b"},
            "namespaceV2",
            "cannot be combined with 'namespace'",
        ),
        ({"nameServer": "nonsense"}, "nameServer", "is invalid"),
        ({"requestTimeout": "0"}, "requestTimeout", "from 10ms to 1d"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp", "such as 2026-01-31T12:00:00Z"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger", "is not available for a batch"),
        ({"groupId": "a b"}, "groupId", "invalid"),
        (
            {"startingTimestamp": "6", "endingTimestamp": "5"},
            "startingTimestamp",
            "is later than endingTimestamp",
        ),
        (
            {"tls": "true", "tlsCa": "ca.pem", "tlsVerify": "false"},
            "tlsVerify",
            "'tlsCa' has no effect",
        ),
        ({"assign": '{"a b": {"broker-a": [0]}}'}, "assign", "invalid topic name 'a b'"),
        ({"assign": DEEP}, "assign", 'must be JSON such as {"orders"'),
        ({"assign": '{"orders": {"broker-a": 1}}'}, "assign", 'must be JSON such as {"orders"'),
        ({"startingOffsets": DEEP}, "startingOffsets", "must be earliest, latest or JSON such as"),
        ({"endingOffsets": DEEP}, "endingOffsets", "must be earliest, latest or JSON such as"),
        ({"startingOffsets": "latest"}, "startingOffsets", "must not be latest for a batch"),
        ({"startingOffsets": AT % -1}, "startingOffsets", "must not be latest for a batch"),
        ({"endingOffsets": "earliest"}, "endingOffsets", "must not be earliest for a batch"),
        ({"endingOffsets": AT % -2}, "endingOffsets", "must not be earliest for a batch"),
        (
            {"startingOffsets": AT % 8, "endingOffsets": AT % 7},
            "endingOffsets",
            "ends before the start: 7 < 8 in MessageQueue(topic='orders', broker_name='broker-a'",
        ),
        (
            {"startingOffsetsByTimestamp": AT % 8, "endingOffsetsByTimestamp": AT % 7},
            "endingOffsetsByTimestamp",
            "ends before the start: 7 < 8",
        ),
        (
            {"startingTimestamp": "5", "startingOffsetsByTimestamp": AT % 8},
            "startingOffsetsByTimestamp",
            "cannot be combined with 'startingTimestamp'",
        ),
        (
            {"startingTimestamp": "2060001"},
            "startingTimestamp",
            "is in the future: 2060001 > 2000000",
        ),
        (
            {"startingOffsetsByTimestamp": AT % 2_060_001},
            "startingOffsetsByTimestamp",
            "set startingOffsetsByTimestampStrategy=latest to read from the end instead",
        ),
        (
            {"startingOffsetsByTimestampStrategy": "latest"},
            "startingOffsetsByTimestampStrategy",
            "requires 'startingTimestamp'",
        ),
        (
            {"startingTimestamp": "5", "startingOffsetsByTimestampStrategy": "earliest"},
            "startingOffsetsByTimestampStrategy",
            "must be one of error, latest, not 'earliest'",
        ),
        (
            {"startingOffsets": "group"},
            "startingOffsets",
            "is group, which requires option 'groupId'",
        ),
        ({"maxBytesPerTrigger": "5m"}, "maxBytesPerTrigger", "is not available for a batch"),
        ({"pullBytes": "64m"}, "pullBytes", "must be at most 8m, not 64m"),
        ({"pullBytes": "8388609"}, "pullBytes", "must be at most 8m, not 8388609"),
    ],
)
def test_what_cannot_work_is_refused_by_name(
    more: dict[str, str], option: str, reason: str
) -> None:
    with pytest.raises(OptionInvalid) as caught:
        source_options(HERE | more, stream=False, now_ms=2_000_000)
    assert caught.value.option == option
    assert reason in str(caught.value)
    assert f"option {option!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("more", "option", "reason"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets", "is not available for a stream"),
        ({"pushdown": "true"}, "pushdown", "is not available for a stream"),
        ({"maxTriggerDelay": "5s"}, "maxTriggerDelay", "requires option 'minOffsetsPerTrigger'"),
        (
            {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
            "minOffsetsPerTrigger",
            "is larger than maxOffsetsPerTrigger (4)",
        ),
    ],
)
def test_streams_have_rules_of_their_own(more: dict[str, str], option: str, reason: str) -> None:
    with pytest.raises(OptionInvalid) as caught:
        source_options(HERE | more, stream=True)
    assert (caught.value.option, reason in str(caught.value)) == (option, True)


def test_the_limits_themselves_are_taken() -> None:
    moments = {"startingTimestamp": "5", "endingTimestamp": "5"}
    read = source_options(HERE | moments | {"pullBytes": "8m"}, stream=False)
    assert read.pulling.size == 8 << 20
    assert (read.starting.time_ms, read.ending.time_ms) == (5, 5)


def test_places_that_make_sense_are_taken() -> None:
    for more in (
        {"startingOffsets": AT % 7, "endingOffsets": AT % 7},
        {"startingOffsets": AT % 7, "endingOffsets": AT % -1},
        {"startingOffsets": "group", "groupId": "g"},
        {"startingTimestamp": "2060000"},
        {"startingTimestamp": "9999999", "startingOffsetsByTimestampStrategy": "latest"},
        {"startingTimestamp": "5", "startingOffsetsByTimestampStrategy": "error"},
    ):
        source_options(HERE | more, stream=False, now_ms=2_000_000)
    stream = {"startingOffsets": AT % -1, "maxBytesPerTrigger": "5m"}
    assert source_options(HERE | stream, stream=True).max_bytes == 5 << 20


def test_something_has_to_be_read() -> None:
    with pytest.raises(OptionInvalid, match="'subscribe' is missing"):
        source_options({"nameServer": "h:1"}, stream=True)


def test_secrets_are_not_shown() -> None:
    given = {"accessKey": "alice", "secretKey": "s3cr3t", "securityToken": "t0k3n"}
    tls = {"tls": "true", "tlsCert": "c.pem", "tlsKeyPassword": "p4ss"}
    read = source_options(HERE | given | tls, stream=True)
    for secret in ("s3cr3t", "t0k3n", "p4ss"):
        assert secret not in repr(read)
    assert read.reach.credentials is not None
    assert read.reach.credentials.secret_key == "s3cr3t"
    assert read.reach.client().tls == read.reach.tls


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (seconds, "15m", 900.0),
        (seconds, "200ms", 0.2),
        (seconds, "2", 2.0),
        (seconds, "1.5 h", 5400.0),
        (size, "4m", 4 << 20),
        (size, "65536", 65536),
        (time_ms, "1700000000000", 1_700_000_000_000),
        (time_ms, "2023-11-14T22:13:20Z", 1_700_000_000_000),
        (time_ms, "2023-11-14T23:13:20.5+01:00", 1_700_000_000_500),
    ],
)
def test_times_and_sizes_have_units(read: Any, text: str, value: float) -> None:
    assert read(text) == value
