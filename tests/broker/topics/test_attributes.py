"""Attributes: how changes are written, and when they are refused, in Java's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.broker.topics import attributes
from pocketmq.errors import AttributeRefused, AttributeUnsupported

Changes = dict[str, str]


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("", {}),
        ("+a=b", {"+a": "b"}),
        ("+a=b,-c,+d=e", {"+a": "b", "-c": "", "+d": "e"}),
        ("+a=b=c", {"+a": "b"}),
        ("+a=b,", {"+a": "b"}),
        (",", {}),
    ],
)
def test_changes_are_read(text: str, changes: Changes) -> None:
    assert attributes.parse_changes(text) == changes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a=b", "add/alter attribute format is wrong: a"),
        ("=b", "add/alter attribute format is wrong: "),
        ("=", "add/alter attribute format is wrong: "),
        ("-a=b", "add/alter attribute format is wrong: -a"),
        ("+a=", "attribute without a value: +a"),
        ("+a", "delete attribute format is wrong: +a"),
        ("a", "delete attribute format is wrong: a"),
        (",-a", "delete attribute format is wrong: "),
        ("+a=b,+a=c", "key duplication: +a"),
    ],
)
def test_changes_that_cannot_be_read_are_refused(text: str, reason: str) -> None:
    with pytest.raises(AttributeRefused) as refused:
        attributes.parse_changes(text)
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("current", "changes", "result"),
    [
        (None, {}, {}),
        (None, {"+queue.type": "SimpleCQ"}, {"queue.type": "SimpleCQ"}),
        (None, {"+queue.type": "BatchCQ"}, {"queue.type": "BatchCQ"}),
        (None, {"+message.type": "PRIORITY"}, {"message.type": "PRIORITY"}),
        (None, {"+cleanup.policy": "DELETE"}, {"cleanup.policy": "DELETE"}),
        (
            {"queue.type": "BatchCQ"},
            {"+message.type": "FIFO"},
            {"queue.type": "BatchCQ", "message.type": "FIFO"},
        ),
        ({"message.type": "FIFO"}, {}, {"message.type": "FIFO"}),
        ({"message.type": "FIFO"}, {"+message.type": "DELAY"}, {"message.type": "DELAY"}),
        ({"message.type": "FIFO"}, {"-message.type": ""}, {}),
        ({}, {"+reserve.time": "-1"}, {"reserve.time": "-1"}),
        ({}, {"+reserve.time": "9223372036854775807"}, {"reserve.time": "9223372036854775807"}),
    ],
)
def test_changes_are_applied(current: Changes | None, changes: Changes, result: Changes) -> None:
    assert attributes.apply_changes(attributes.TOPIC_ATTRIBUTES, current, changes) == result


@pytest.mark.parametrize(
    ("current", "changes", "reason"),
    [
        (None, {"-message.type": ""}, "only add attribute is supported while creating topic. key: message.type"),
        (None, {"message.type": "FIFO"}, "only add attribute is supported while creating topic. key: essage.type"),
        ({}, {"message.type": "FIFO"}, "wrong format key: essage.type"),
        ({}, {"-message.type": ""}, "attempt to delete a nonexistent key: message.type"),
        ({}, {"+queue.type": "BatchCQ"}, "attempt to update an unchangeable attribute. key: queue.type"),
        ({"queue.type": "BatchCQ"}, {"-queue.type": ""}, "attempt to update an unchangeable attribute. key: queue.type"),
        ({}, {"+colour": "red"}, "unsupported key: colour"),
        ({}, {"+": "x"}, "kv string format wrong."),
        ({}, {"": "x"}, "kv string format wrong."),
        ({}, {"++a": "x"}, "kv string format wrong."),
        ({}, {"+a-b": "x"}, "kv string format wrong."),
        ({"message.type": "FIFO"}, {"+message.type": "DELAY", "-message.type": ""}, "alter duplication key. key: message.type"),
        ({}, {"+lite.topic.expiration": "ten"}, 'For input string: "ten"'),
        ({}, {"+lite.topic.expiration": "43201"}, "value is not in range(-1, 43200)"),
        ({}, {"+reserve.time": "9223372036854775808"}, 'For input string: "9223372036854775808"'),
    ],
)  # fmt: skip
def test_changes_that_make_no_sense_are_refused(
    current: Changes | None, changes: Changes, reason: str
) -> None:
    with pytest.raises(AttributeRefused) as refused:
        attributes.apply_changes(attributes.TOPIC_ATTRIBUTES, current, changes)
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"+cleanup.policy": "COMPACTION"}, "COMPACTION cleanup policy is not supported: "),
        ({"+message.type": "LITE"}, "LITE message type is not supported: this broker has no lite"),
    ],
)
def test_what_the_broker_lacks_is_refused_and_not_ignored(changes: Changes, words: str) -> None:
    with pytest.raises(AttributeUnsupported) as refused:
        attributes.apply_changes(attributes.TOPIC_ATTRIBUTES, None, changes)
    assert refused.value.reason.startswith(words)


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        ({}, []),
        ({"queue.type": "SimpleCQ", "message.type": "PRIORITY", "colour": "COMPACTION"}, []),
        (
            {"cleanup.policy": "COMPACTION", "message.type": "LITE", "reserve.time": "5"},
            ["cleanup.policy=COMPACTION", "message.type=LITE"],
        ),
    ],
)
def test_what_was_stored_before_it_was_refused_is_found(stored: Changes, found: list[str]) -> None:
    assert attributes.lacking(stored) == found


@pytest.mark.parametrize(
    ("key", "value", "good"),
    [
        ("lite.sub.reset.offset.exclusive", "TRUE", True),
        ("lite.sub.reset.offset.exclusive", "yes", False),
        ("lite.sub.model", "Exclusive", True),
        ("lite.sub.model", "exclusive", False),
        ("lite.sub.client.max.event.cnt", "9", False),
        ("lite.sub.client.max.event.cnt", "10", True),
        ("lite.bind.topic", "anything", True),
    ],
)
def test_attributes_of_groups_are_checked(key: str, value: str, good: bool) -> None:
    changes = {f"+{key}": value}
    if good:
        assert attributes.apply_changes(attributes.GROUP_ATTRIBUTES, {}, changes) == {key: value}
    else:
        with pytest.raises(AttributeRefused):
            attributes.apply_changes(attributes.GROUP_ATTRIBUTES, {}, changes)


@given(st.text("+-=,ab.", max_size=12))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    try:
        changes = attributes.parse_changes(text)
    except AttributeRefused:
        return
    assert all("+" in key or "-" in key for key in changes)
