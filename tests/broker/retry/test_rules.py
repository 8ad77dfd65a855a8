"""What the three ways a message fails have in common; `test_retry` has the rules of sending back."""

import pytest

from pocketmq.broker.retry import rules
from pocketmq.broker.writing.drafts import Draft
from pocketmq.model import GroupConfig
from pocketmq.protocol import RecordView
from pocketmq.protocol.records import Record, encode_record

POP = rules.PopOfFailed(group="G", topic="T", time_ms=1234)


def failed_record(properties: bytes, tries: int = 0) -> RecordView:
    record = Record(
        topic=b"%RETRY%G_T",
        body=b"body",
        property_bytes=properties,
        flag=5,
        born_timestamp_ms=17,
        reconsume_times=tries,
    )
    return RecordView(encode_record(record), 0)


@pytest.mark.parametrize(
    ("tries", "limit", "exhausted"),
    [(0, 0, True), (0, -1, True), (2, 3, False), (3, 3, True), (4, 3, True)],
)
def test_a_message_becomes_a_dead_letter_after_the_same_retries_by_every_way(
    tries: int, limit: int, exhausted: bool
) -> None:
    assert rules.retries_exhausted(tries, limit) == exhausted
    assert (rules.level_of_retry(tries, limit, 0) is None) == exhausted


def test_a_group_decides_on_the_limit_of_what_it_pops() -> None:
    assert rules.retry_limit(GroupConfig(group_name="G", retry_max_times=3)) == 3


def test_an_unacknowledged_message_comes_back_as_it_was_with_one_more_try() -> None:
    failed = failed_record(b"KEYS\1k\2")
    draft = rules.retry_of_popped(failed, "%RETRY%G_T", POP, exhausted=False)
    assert draft.properties == {"KEYS": "k", "1ST_POP_TIME": "1234", "ORIGIN_GROUP": "G"}
    back = rules.retry_of(failed, 3)
    back.topic, back.properties = draft.topic, draft.properties
    assert draft == back, "the copies differ in topic and properties alone"
    assert (draft.topic, draft.queue_id, draft.reconsume_times) == ("%RETRY%G_T", 0, 1)


def test_a_later_pop_does_not_change_when_the_first_was() -> None:
    failed = failed_record(b"1ST_POP_TIME\0017\2", tries=1)
    draft = rules.retry_of_popped(failed, "%RETRY%G_T", POP, exhausted=False)
    assert draft.properties["1ST_POP_TIME"] == "7"


def test_a_popped_dead_letter_names_the_topic_it_first_came_from() -> None:
    draft = rules.retry_of_popped(failed_record(b""), "%DLQ%G", POP, exhausted=True)
    assert (draft.topic, draft.properties["RETRY_TOPIC"]) == ("%DLQ%G", "T")
    known = failed_record(b"RETRY_TOPIC\1first\2")
    draft = rules.retry_of_popped(known, "%DLQ%G", POP, exhausted=True)
    assert draft.properties["RETRY_TOPIC"] == "first"


def test_a_retry_that_its_consumer_sent_goes_to_the_dead_letters_without_delay() -> None:
    draft = Draft(
        topic="%RETRY%G",
        queue_id=3,
        body=b"x",
        properties={"DELAY": "5", "KEYS": "k"},
        flag=0,
        sys_flag=0,
        born_timestamp_ms=0,
        born_host=bytes(8),
        reconsume_times=4,
    )
    rules.redirect_to_dead_letters(draft, "G")
    assert (draft.topic, draft.queue_id, draft.reconsume_times) == ("%DLQ%G", 0, 4)
    assert draft.properties == {"DELAY": "-1", "KEYS": "k"}
