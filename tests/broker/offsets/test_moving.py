"""Resetting, cloning and comparing offsets."""

from typing import Any

import pytest

from pocketmq.errors import ResponseCode
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command, decode_body
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.peers import Language
from pocketmq.protocol.requests.offsets import CorrectionOffsets, ListedResetOffset, ResetOffset
from tests.broker.members.test_requests import beat, consumer
from tests.broker.offsets.test_progress import group_at
from tests.broker.tables import Desk
from tests.broker.wire import Wire

LONGEST = 2**63 - 1


def reset(desk: Desk, **ext: Any) -> Command:
    fields = {"topic": "T", "group": "G", "timestamp": "-1", "isForce": "true"}
    fields |= {key: str(value) for key, value in ext.items()}
    return desk.ask(Code.INVOKE_BROKER_TO_RESET_OFFSET, fields)


def targets(answer: Command) -> dict[int, int]:
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    table = decode_body(answer.body, ResetOffset).offset_table
    assert {(queue.topic, queue.broker_name) for queue in table} <= {("T", "b")}
    return {queue.queue_id: offset for queue, offset in table.items()}


def test_a_group_is_sent_to_the_end_or_to_a_moment() -> None:
    desk = group_at(0)
    assert targets(reset(desk)) == {0: 2, 1: 0}
    assert desk.state.offsets.query("G", "T", 0) == 2
    assert targets(reset(desk, timestamp=desk.clock.now_ms() - 30_000)) == {0: 1, 1: 0}
    assert targets(reset(desk, timestamp=0)) == {0: 0, 1: 0}
    assert desk.state.offsets.has_reset("G", "T", 0)


def test_one_queue_alone_is_sent_to_an_offset_that_it_has() -> None:
    desk = group_at()
    assert targets(reset(desk, queueId=0, offset=2)) == {0: 2}
    assert targets(reset(desk, queueId=0, offset=3)) == {0: 3}  # as far as Java goes
    refused = reset(desk, queueId=0, offset=4)
    assert refused.code == ResponseCode.SYSTEM_ERROR
    assert "Target offset 4 not in consume queue range [0-2]" in (refused.remark or "")
    assert targets(reset(desk, queueId=1)) == {1: 0}


@pytest.mark.parametrize(
    ("ext", "remark"),
    [
        ({"topic": "gone"}, "Topic gone does not exist"),
        ({"group": "gone"}, "Group gone does not exist"),
        ({"queueId": 65_536}, "QueueId 65536 is illegal, topic is T"),
    ],
)
def test_what_is_not_there_is_not_reset(ext: dict[str, Any], remark: str) -> None:
    assert remark in (reset(group_at(), **ext).remark or "")


def by_clients(offset: int = 1) -> tuple[Desk, Wire]:
    desk = group_at(offset, use_server_side_reset_offset=False)
    desk.state.offsets.commit("G", "T", 1, 0)
    wire = Wire("a")
    beat(desk, wire, consumer("G", "T"))
    wire.take()
    return desk, wire


def test_clients_are_sent_the_offsets_to_resume_from() -> None:
    desk, wire = by_clients()
    assert targets(reset(desk)) == {0: 2, 1: 0}
    (told,) = wire.take()
    assert (told.code, told.is_oneway) == (Code.RESET_CONSUMER_CLIENT_OFFSET, True)
    assert told.ext["timestamp"] == "-1"
    assert decode_body(told.body, ResetOffset).offset_table == {
        MessageQueue("T", "b", 0): 2,
        MessageQueue("T", "b", 1): 0,
    }
    assert desk.state.offsets.query("G", "T", 0) == 1  # the clients commit it themselves


def test_without_force_clients_only_go_back() -> None:
    desk, _ = by_clients()
    assert targets(reset(desk, isForce="false")) == {0: 1, 1: 0}
    assert targets(reset(desk, isForce="false", timestamp=0)) == {0: 0, 1: 0}


def test_a_reset_by_clients_is_refused_if_they_are_offline_or_too_old() -> None:
    desk, wire = by_clients()
    for member in desk.state.consumers.groups["G"].members.values():
        member.client = type(member.client)(member.client.client_id, Language.JAVA, 27)
    assert "the client does not support this feature. version=V3" in (reset(desk).remark or "")
    assert wire.take() == []
    desk.disconnect(wire)
    assert "Consumer not online, so can not reset offset, Group: G" in (reset(desk).remark or "")
    desk.state.offsets.remove_group("G")
    assert "THe consumer group <G> not exist" in (reset(desk).remark or "")


def test_clients_in_cpp_get_a_list() -> None:
    assert ResetOffset(offset_table={MessageQueue("T", "b", 0): 2}).listed() == decode_body(
        b'{"offsetTable":[{"brokerName":"b","offset":2,"queueId":0,"topic":"T"}]}',
        ListedResetOffset,
    )


def clone(desk: Desk, **ext: str) -> None:
    fields = {"srcGroup": "G", "destGroup": "H", "offline": "true"} | ext
    assert desk.ask(Code.CLONE_GROUP_OFFSET, fields).code == ResponseCode.SUCCESS


def test_offsets_are_cloned_for_one_topic_or_for_all() -> None:
    desk = group_at()
    desk.make_topic("U")
    desk.state.offsets.commit("G", "U", 3, 9)
    clone(desk, topic="U")
    assert desk.state.offsets.topics_of("H") == ["U"]
    clone(desk)
    assert sorted(desk.state.offsets.topics_of("H")) == ["T", "U"]
    assert desk.state.offsets.query("H", "T", 0) == 1


def test_what_an_online_group_has_left_is_not_cloned() -> None:
    desk = group_at()
    desk.make_topic("U")
    desk.state.offsets.commit("G", "U", 3, 9)
    beat(desk, Wire("a"), consumer("G", "U"))
    clone(desk, offline="false")
    assert desk.state.offsets.topics_of("H") == ["U"]


def test_the_lowest_offsets_of_a_topics_groups() -> None:
    """Where the group to compare with is lower than all others, there is nothing to correct."""
    desk = group_at()
    desk.state.offsets.commit("H", "T", 0, 2)
    desk.state.offsets.commit("I", "T", 0, 0)

    def corrected(compare: str, left_out: str = "") -> dict[int, int]:
        fields = {"topic": "T", "compareGroup": compare, "filterGroups": left_out}
        answer = desk.ask(Code.QUERY_CORRECTION_OFFSET, fields)
        return decode_body(answer.body, CorrectionOffsets).correction_offsets

    assert corrected("H") == {0: 0}
    assert corrected("H", "I") == {0: 1}
    assert corrected("G", "G,I") == {0: LONGEST}
    assert desk.state.offsets.query("I", "T", 0) == 0
