"""Tables and a real store: what was answered survives a restart."""

from pathlib import Path

import pytest

from pocketmq.broker.saving import save_changes, submit_offsets
from pocketmq.errors import StoreError
from pocketmq.protocol import RequestCode as Code
from tests.broker.tables import Desk
from tests.broker.wire import Wire

TOPIC = {
    "topic": "T",
    "defaultTopic": "TBW102",
    "readQueueNums": "3",
    "writeQueueNums": "2",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
    "order": "true",
    "attributes": "+message.type=FIFO",
}


def fill(desk: Desk) -> None:
    heartbeat = {
        "clientID": "c",
        "consumerDataSet": [{"groupName": "CG", "subscriptionDataSet": [{"topic": "T"}]}],
        "producerDataSet": [],
    }
    mode = {"topic": "T", "consumerGroup": "CG", "mode": "POP", "popShareQueueNum": 2}
    desk.ask(Code.UPDATE_AND_CREATE_TOPIC, TOPIC)
    desk.ask(Code.UPDATE_AND_CREATE_TOPIC, TOPIC | {"topic": "gone"})
    desk.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, {"groupName": "G", "retryMaxTimes": 5})
    desk.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, {"groupName": "gone"})
    desk.ask(Code.HEART_BEAT, None, heartbeat, Wire("c"))
    desk.ask(Code.SET_MESSAGE_REQUEST_MODE, None, mode)
    desk.ask(Code.UPDATE_AND_GET_GROUP_FORBIDDEN, {"group": "G", "topic": "T", "readable": "false"})
    desk.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": "gone"})
    desk.ask(Code.DELETE_SUBSCRIPTIONGROUP, {"groupName": "gone"})


def test_topics_groups_and_modes_are_there_after_a_restart(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    fill(desk)
    desk.close()
    again = Desk(tmp_path)

    assert again.state.topics.entries == desk.state.topics.entries
    assert "%RETRY%CG" in again.state.topics
    assert again.state.groups.entries == desk.state.groups.entries
    assert again.state.groups.forbidden.entries == {"G": {"T": 4}}
    assert again.state.modes.entries == desk.state.modes.entries
    again.close()


def test_a_restart_has_a_version_of_its_own(tmp_path: Path) -> None:
    """A name server that still knows the old version must not take the tables for the same."""
    desk = Desk(tmp_path)
    fill(desk)
    desk.close()
    again = Desk(tmp_path)

    assert again.state.topics.version != desk.state.topics.version
    again.close()


def test_system_topics_follow_the_settings_not_the_store(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    fill(desk)
    desk.close()
    again = Desk(tmp_path, broker_name="other", auto_create_topic_enable=False)

    assert "other" in again.state.topics
    assert "broker-a" not in again.state.topics
    assert "TBW102" not in again.state.topics
    again.close()


def test_offsets_are_there_after_a_restart_once_saved(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    offsets = desk.state.offsets
    for _ in range(7):
        desk.store_message("t", 0)
        desk.store_message("t", 1)
    offsets.commit("g", "t", 0, 5)
    offsets.commit("h", "t", 1, 7)
    submit_offsets(desk.state)
    offsets.commit("g", "t", 0, 6)
    offsets.remove_group("h")
    submit_offsets(desk.state)
    offsets.commit("g", "t", 0, 99)
    desk.close()
    again = Desk(tmp_path)

    assert again.state.offsets.committed == {("t", "g"): {0: 6}}
    again.close()


def test_name_servers_hear_of_topics_that_are_new_or_changed() -> None:
    desk = Desk()
    fill(desk)
    assert sorted(desk.announced) == ["%RETRY%CG", "T", "gone"]
    desk.announced.clear()
    desk.ask(Code.UPDATE_AND_CREATE_TOPIC, TOPIC | {"attributes": ""})
    desk.ask(Code.UPDATE_AND_CREATE_TOPIC, TOPIC | {"perm": "4", "attributes": ""})

    assert desk.announced == ["T", "T"]


def test_what_could_not_be_saved_is_saved_with_the_next_change() -> None:
    desk = Desk()
    metadata = desk.state.store.metadata
    metadata._connection.execute("pragma query_only = on")  # as on a disk mounted read-only
    desk.state.groups.find("G", auto_create=True, now_ms=1)
    desk.state.offsets.commit("G", "T", 0, 1)
    with pytest.raises(StoreError):
        save_changes(desk.state)
    outcomes: list[Exception | None] = []
    submit_offsets(desk.state, outcomes.append)
    assert isinstance(outcomes[0], StoreError)
    metadata._connection.execute("pragma query_only = off")
    save_changes(desk.state)
    submit_offsets(desk.state)

    assert [name for name, _ in metadata.documents("group")] == ["G"]
    assert metadata.consumer_offsets() == [("T", "G", 0, 1)]
