"""Names: what RocketMQ accepts, what it keeps for itself, namespaces both ways."""

import pytest

from pocketmq.errors import NameInvalid
from pocketmq.model import names


@pytest.mark.parametrize("topic", ["a", "A-b_9", "%RETRY%g", "x" * 127, "%DLQ%" + "g" * 250, "a|b"])
def test_good_topics_pass(topic: str) -> None:
    names.check_topic(topic)


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("", "it must not be empty"),
        ("  ", "it must not be empty"),
        ("a b", "allowed are letters, digits and % | _ -"),
        ("a/../b", "allowed are letters, digits and % | _ -"),
        ("a\n", "allowed are letters, digits and % | _ -"),
        ("ü", "allowed are letters, digits and % | _ -"),
        ("x" * 128, "it has 128 characters; at most 127 are allowed"),
        ("%RETRY%" + "g" * 249, "it has 256 characters; at most 255 are allowed"),
    ],
)
def test_bad_topics_are_refused_with_the_reason(topic: str, reason: str) -> None:
    with pytest.raises(NameInvalid) as caught:
        names.check_topic(topic)
    assert caught.value.reason == reason


def test_groups_have_a_limit_of_their_own() -> None:
    names.check_group("g" * 120)
    with pytest.raises(NameInvalid, match="121 characters; at most 120 are allowed"):
        names.check_group("g" * 121)


def test_the_two_reserved_group_names_are_refused_where_they_belong() -> None:
    names.check_producer_group("DEFAULT_CONSUMER")
    names.check_consumer_group("DEFAULT_PRODUCER")
    with pytest.raises(NameInvalid, match="reserved"):
        names.check_producer_group("DEFAULT_PRODUCER")
    with pytest.raises(NameInvalid, match="reserved"):
        names.check_consumer_group("DEFAULT_CONSUMER")


def test_derived_topics_are_recognised() -> None:
    assert names.is_retry_topic(names.retry_topic("g"))
    assert names.is_dead_letter_topic(names.dead_letter_topic("g"))
    assert not names.is_retry_topic("g")
    assert names.is_system_topic("TBW102")
    assert names.is_system_topic("rmq_sys_wheel_timer")
    assert not names.is_system_topic("orders")


@pytest.mark.parametrize(
    ("plain", "wrapped"),
    [
        ("TopicA", "NS%TopicA"),
        ("%RETRY%G", "%RETRY%NS%G"),
        ("%DLQ%G", "%DLQ%NS%G"),
    ],
)
def test_namespaces_wrap_and_unwrap(plain: str, wrapped: str) -> None:
    assert names.wrap_namespace("NS", plain) == wrapped
    assert names.wrap_namespace("NS", wrapped) == wrapped
    assert names.unwrap_namespace("NS", wrapped) == plain
    assert names.unwrap_namespace("OTHER", wrapped) == wrapped


@pytest.mark.parametrize("name", ["TBW102", "CID_RMQ_SYS_X", "rmq_sys_x", ""])
def test_system_names_stay_outside_namespaces(name: str) -> None:
    assert names.wrap_namespace("NS", name) == name


def test_without_a_namespace_nothing_changes() -> None:
    assert names.wrap_namespace("", "TopicA") == "TopicA"
    assert names.unwrap_namespace("", "NS%TopicA") == "NS%TopicA"
