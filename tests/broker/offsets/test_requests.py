"""Requests about offsets: what the session with Java leaves open."""

import pytest

from pocketmq.broker.topics.table import MAX_QUEUES
from pocketmq.errors import ResponseCode
from pocketmq.protocol import Command
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.fastjson import loads
from pocketmq.protocol.requests import offsets
from pocketmq.store import StoreOptions
from tests.broker.tables import Desk

SMALL = 64 * 1024
"""Bytes of a segment of which two messages of half its size fill more than one."""


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    for name in ("T", "U"):
        desk.make_topic(name)
    desk.state.groups.find("g", auto_create=True, now_ms=1)
    return desk


def commit(desk: Desk, offset: int, queue_id: int = 0) -> Command:
    return desk.ask(
        Code.UPDATE_CONSUMER_OFFSET,
        {"consumerGroup": "g", "topic": "T", "queueId": f"{queue_id}", "commitOffset": f"{offset}"},
    )


def query(desk: Desk) -> int | None:
    answer = desk.ask(
        Code.QUERY_CONSUMER_OFFSET, {"consumerGroup": "g", "topic": "T", "queueId": "0"}
    )
    if answer.code == ResponseCode.QUERY_NOT_FOUND:
        return None
    return answer.header(offsets.QueryConsumerOffsetResponse).offset


def test_a_one_way_commit_is_not_answered(desk: Desk) -> None:
    ext = {"consumerGroup": "g", "topic": "T", "queueId": "0", "commitOffset": "5"}

    assert desk.try_ask(Code.UPDATE_CONSUMER_OFFSET, ext, oneway=True) is None
    assert query(desk) == 5


def test_commits_are_ignored_until_a_reset_is_carried_out(desk: Desk) -> None:
    desk.state.offsets.reset("g", "T", 0, 3)
    answer = commit(desk, 50)

    assert (answer.code, answer.remark) == (0, "Offset has been previously reset")
    assert query(desk) == 3
    assert desk.state.offsets.take_reset("g", "T", 0) == 3
    commit(desk, 50)
    assert query(desk) == 50


@pytest.mark.parametrize("queue_id", [-1, MAX_QUEUES, 2**31 - 1])
def test_a_queue_no_topic_can_have_is_refused(desk: Desk, queue_id: int) -> None:
    """Otherwise one client could fill the table with queues that never were."""
    answer = commit(desk, 1, queue_id)

    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert desk.state.offsets.committed == {}


def test_a_group_without_progress_begins_at_0_while_the_queue_is_whole(desk: Desk) -> None:
    assert query(desk) is None
    desk.store_message("T", 0)
    assert query(desk) == 0


def test_a_queue_that_lost_its_beginning_has_no_place_for_a_new_group() -> None:
    desk = Desk(options=StoreOptions(segment_size=SMALL))
    store = desk.state.store
    for _ in range(3):
        desk.store_message("T", 0, bytes(SMALL // 2))
    store.write()
    assert query(desk) == 0
    assert store.checkpoint()
    assert store.drop_first_segment()

    assert query(desk) is None


def test_moments_are_found_between_messages(desk: Desk) -> None:
    start = desk.clock.now_ms()
    for _ in range(3):
        desk.store_message("T", 0)
        desk.clock.time += 10

    def search(milliseconds: int, **edge: str) -> int:
        ext = {"topic": "T", "queueId": "0", "timestamp": str(start + milliseconds)} | edge
        return (
            desk.ask(Code.SEARCH_OFFSET_BY_TIMESTAMP, ext)
            .header(offsets.SearchOffsetResponse)
            .offset
        )

    assert [search(ms) for ms in (-1, 0, 1, 10_000, 20_000, 20_001)] == [0, 0, 1, 1, 2, 3]
    upper = {"boundaryType": "upper"}
    assert [search(ms, **upper) for ms in (-1, 0, 9_999, 10_000, 99_999)] == [0, 0, 0, 1, 2]


def test_the_first_message_tells_when_it_was_stored(desk: Desk) -> None:
    start = desk.clock.now_ms()
    desk.store_message("T", 0)
    desk.clock.time += 10
    desk.store_message("T", 0)
    answer = desk.ask(Code.GET_EARLIEST_MSG_STORETIME, {"topic": "T", "queueId": "0"})

    assert answer.header(offsets.GetEarliestStoreTimeResponse).timestamp == start


def test_all_offsets_are_listed_as_a_slave_reads_them(desk: Desk) -> None:
    commit(desk, 7)
    commit(desk, 9, 3)
    desk.state.offsets.record_pull("g", "T", 0, 8)
    body = loads(desk.ask(Code.GET_ALL_CONSUMER_OFFSET).body)

    assert body["offsetTable"] == {"T@g": {"0": 7, "3": 9}}
    assert body["pullOffsetTable"] == {"T@g": {"0": 8}}
    assert body["groupTopicMap"] == {"g": ["T"]}


def test_a_deleted_topic_takes_its_offsets_and_messages_along(desk: Desk) -> None:
    desk.store_message("T", 0)
    commit(desk, 1)
    desk.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": "T"})

    assert desk.state.store.queue("T", 0) is None
    assert desk.state.offsets.committed == {}


@pytest.mark.parametrize("flag", ["cleanOffset", "removeOffset"])
def test_a_deleted_group_takes_its_offsets_along_if_either_version_says_so(
    desk: Desk, flag: str
) -> None:
    commit(desk, 1)
    desk.ask(Code.DELETE_SUBSCRIPTIONGROUP, {"groupName": "g"})
    assert desk.state.offsets.committed == {("T", "g"): {0: 1}}
    desk.ask(Code.DELETE_SUBSCRIPTIONGROUP, {"groupName": "g", flag: "true"})
    assert desk.state.offsets.committed == {}
