"""Topics and groups as requests: limits, and what the session with Java leaves open."""

import logging
from pathlib import Path

import pytest

from pocketmq.broker.groups.table import GroupConfigTable
from pocketmq.broker.topics.table import MAX_QUEUES, TopicConfigTable
from pocketmq.errors import ResponseCode
from pocketmq.model import TopicConfig
from pocketmq.protocol import Command, decode_body, encode_body
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.requests.topics import GetAllTopicConfigResponse, TopicTableBody
from tests.broker.tables import Desk


@pytest.mark.parametrize("count", [-1, MAX_QUEUES + 1, 2**31 - 1])
@pytest.mark.parametrize("which", ["readQueueNums", "writeQueueNums"])
def test_no_topic_has_more_queues_than_can_be_listed(which: str, count: int) -> None:
    desk = Desk()
    answer = desk.make_topic("T", **{which: str(count)})

    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "T" not in desk.state.topics


def test_a_broker_with_too_many_topics_makes_no_more() -> None:
    desk = Desk()
    desk.state.topics = TopicConfigTable(limit=1)
    first, second, again = (
        desk.make_topic("T"),
        desk.make_topic("U"),
        desk.make_topic("T", perm="4"),
    )

    assert [first.code, second.code, again.code] == [0, ResponseCode.SYSTEM_ERROR, 0]
    assert second.remark == "this broker has as many topics as it can have"


def test_a_broker_with_too_many_groups_makes_no_more() -> None:
    desk = Desk()
    desk.state.groups = GroupConfigTable(limit=1)

    def make(name: str) -> Command:
        body = {"groupName": name}
        return desk.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)

    assert [make(name).code for name in ("g", "h", "g")] == [0, ResponseCode.SYSTEM_ERROR, 0]


def test_a_list_of_topics_makes_those_that_are_new() -> None:
    """Java makes none of them if one is as it was already."""
    desk = Desk()
    configs = [{"topicName": name, "readQueueNums": 2} for name in ("T", "U")]
    desk.ask(Code.UPDATE_AND_CREATE_TOPIC_LIST, {}, {"topicConfigList": configs[:1]})
    answer = desk.ask(Code.UPDATE_AND_CREATE_TOPIC_LIST, {}, {"topicConfigList": configs})

    assert answer.code == ResponseCode.SUCCESS
    assert "U" in desk.state.topics


def test_a_list_with_a_bad_name_makes_no_topic_at_all() -> None:
    desk = Desk()
    configs = [{"topicName": "T"}, {"topicName": "a b"}]
    answer = desk.ask(Code.UPDATE_AND_CREATE_TOPIC_LIST, {}, {"topicConfigList": configs})

    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert "T" not in desk.state.topics


def test_what_was_made_before_a_refusal_is_saved_and_announced() -> None:
    desk = Desk()
    configs = [{"topicName": "T"}, {"topicName": "U", "attributes": {"+colour": "red"}}]
    answer = desk.ask(Code.UPDATE_AND_CREATE_TOPIC_LIST, {}, {"topicConfigList": configs})

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert desk.announced == ["T"]
    assert [name for name, _ in desk.state.store.metadata.documents("topic")] == ["T"]


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ("+cleanup.policy=COMPACTION", "COMPACTION cleanup policy is not supported: "),
        ("+queue.type=BatchCQ,+message.type=LITE", "LITE message type is not supported: "),
        ("+message.type=LITE", "LITE message type is not supported: "),
        ("+message.type=MIXED", "MIXED message type is not supported."),
    ],
)
def test_a_topic_that_asks_for_what_is_lacking_is_refused(attributes: str, words: str) -> None:
    """With the code that Java has for MIXED; a list of topics is refused alike."""
    desk = Desk()
    pairs = dict(pair.split("=") for pair in attributes.split(","))
    listed = {"topicConfigList": [{"topicName": "T", "attributes": pairs}]}
    for answer in (
        desk.make_topic("T", attributes=attributes),
        desk.ask(Code.UPDATE_AND_CREATE_TOPIC_LIST, {}, listed),
    ):
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert (answer.remark or "").startswith(words)
    assert "T" not in desk.state.topics


def test_topics_of_an_earlier_release_load_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(tmp_path)
    asked = {"C": {"cleanup.policy": "COMPACTION"}, "L": {"message.type": "LITE"}, "N": {}}
    stored: dict[str, bytes | None] = {
        name: encode_body(TopicConfig(topic_name=name, attributes=attributes))
        for name, attributes in asked.items()
    }
    desk.state.save_documents("topic", stored)
    desk.close()

    with caplog.at_level(logging.WARNING, "pocketmq.broker"):
        again = Desk(tmp_path)

    (message,) = caplog.messages
    assert message == (
        "attributes of topics are not supported and ignored: topics=2 "
        "first=C (cleanup.policy=COMPACTION); L (message.type=LITE); "
        "delete and recreate the topics without them"
    )
    changed = again.make_topic("C", attributes="+message.type=PRIORITY")
    assert changed.code == ResponseCode.SUCCESS, changed.remark
    again.close()


def test_all_topics_are_read_page_by_page() -> None:
    desk = Desk()
    for number in range(5):
        desk.make_topic(f"T{number}")
    seen: dict[str, object] = {}
    version = ""
    while True:
        ext = {"topicSeq": str(len(seen)), "dataVersion": version, "maxTopicNum": "4"}
        answer = desk.ask(Code.GET_ALL_TOPIC_CONFIG, ext)
        body = decode_body(answer.body, TopicTableBody)
        seen |= body.topic_config_table
        version = encode_body(body.data_version).decode()
        total = answer.header(GetAllTopicConfigResponse).total_topic_num
        if len(seen) == total:
            break
        assert body.topic_config_table

    assert seen == desk.state.topics.entries


def test_deleting_a_topic_deletes_the_retry_topics_of_those_who_pop_it() -> None:
    desk = Desk()
    for name in ("T", "%RETRY%g_T", "%RETRY%g_other"):
        desk.make_topic(name)
    desk.state.offsets.commit("g", "T", 0, 1)
    desk.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": "T"})

    assert "%RETRY%g_T" not in desk.state.topics
    assert "%RETRY%g_other" in desk.state.topics


def test_only_a_group_and_a_topic_that_exist_can_be_kept_apart() -> None:
    desk = Desk()
    desk.make_topic("T")
    ext = {"group": "nobody", "topic": "T", "readable": "false"}
    answer = desk.ask(Code.UPDATE_AND_GET_GROUP_FORBIDDEN, ext)

    assert answer.code == ResponseCode.SUCCESS
    assert desk.state.groups.forbidden.entries == {}
