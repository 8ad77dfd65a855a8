"""The core reads responses to pops and acks as the pure functions do."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.protocol import Command
from pocketmq.protocol.handles import TopicMark
from pocketmq.protocol.pulled import KEPT_SLICE
from tests.client.pop.shelves import record
from tests.client.pop.test_usual import BROKER, TOPIC, changed, response
from tests.native.both import alone, damaged, same

OFFSETS = st.lists(st.integers(0, 10**18 - 1), min_size=1, max_size=5)
TOPICS = st.sampled_from([TOPIC, "%RETRY%billing_orders", "%RETRY%billing+orders", "é"])
NUMBERS = st.sampled_from(
    ["0", "-1", "007", "-0", "", "x", "1.0", "9" * 18, "9" * 19, "9" * 30, str(2**31), "1 "]
)
NAMES = st.sampled_from(
    ["popTime", "invisibleTime", "reviveQid", "restNum", "startOffsetInfo", "msgOffsetInfo",
     "orderCountInfo", "more"]
)  # fmt: skip
PLACES = st.sampled_from(
    ["0 3 5", "0 03 5", "0 3 05", "3 3 5", "0 3 5,6", "0 3 5;0 4 6", "0 3", "0 3 ", "0 4 5",
     "0 3 5,", "1 3 5", "0  3 5", "0 3 " + "5" * 19, "é", '"']
)  # fmt: skip


def both_read(frame: bytes, opaque: int = 7) -> None:
    same("read_usual_pop", BROKER, TOPIC, frame, opaque)
    same("is_done", frame, opaque)


@pytest.mark.parametrize("topic", [TOPIC, "%RETRY%billing_orders", "%RETRY%billing+orders"])
@pytest.mark.parametrize("offsets", [[5], [5, 6, 9], [0, 10**18 - 1], list(range(100, 132))])
def test_usual_pops_are_read_by_the_core_alone(topic: str, offsets: list[int]) -> None:
    frame = response(offsets, topic=topic).encode()
    assert len(alone("read_usual_pop", BROKER, TOPIC, frame, 7)) == len(offsets)
    both_read(frame)


@settings(max_examples=300)
@given(OFFSETS, TOPICS, st.sampled_from([None, *TopicMark]), st.integers(2, 4), st.data())
def test_pops_of_any_topic_and_queue(
    offsets: list[int], topic: str, mark: TopicMark | None, queue_id: int, data: Any
) -> None:
    frame = response(offsets, topic=topic, queue_id=queue_id, mark=mark).encode()
    both_read(data.draw(damaged(frame)))
    both_read(frame, data.draw(st.sampled_from([7, 8, 0])))


@settings(max_examples=300)
@given(NAMES, NUMBERS | PLACES | st.none(), st.sampled_from([{}, {"code": 1}, {"flag": 0}]))
def test_fields_of_any_form(name: str, value: str | None, fields: dict[str, int]) -> None:
    both_read(changed(msgspec.structs.replace(response([5]), **fields), **{name: value}))


@given(
    st.sampled_from([None, "", "FOUND", 'a "b"', "é"]), st.integers(-9, 9), st.binary(max_size=3)
)
def test_headers_of_any_form(remark: str | None, opaque: int, body: bytes) -> None:
    for command in (response([5]), Command(0, 7, flag=1), Command(0, 7, flag=1, body=body)):
        both_read(msgspec.structs.replace(command, remark=remark, opaque=opaque).encode(), opaque)
        both_read(command.encode().replace(b'"opaque":7', b'"opaque":7,"opaque":%d' % opaque))


@pytest.mark.parametrize("size", [0, 1, KEPT_SLICE, KEPT_SLICE + 1])
@pytest.mark.parametrize("more", [{}, {"sys_flag": 1}, {"born_host": bytes(20)}, {"body_crc": 5}])
@pytest.mark.parametrize("name", ["k", "POP_CK", "1ST_POP_TIME"])
def test_records_of_any_kind(size: int, more: dict[str, Any], name: str) -> None:
    said = response([5, 6])
    for other in ({"queue_id": 4}, {"queue_id": 3}, {"queue_id": 3, "topic": "others"}):
        body = record(5, bytes(size), queue_id=3, properties={name: "1"}, **more)
        both_read(msgspec.structs.replace(said, body=body + record(6, b"x", **other)).encode())


def test_a_usual_acknowledgement_is_read_by_the_core_alone() -> None:
    frame = Command(0, 7, flag=1).encode()
    assert alone("is_done", frame, 7) is True
    assert same("is_done", frame, 8) == ("returned", (type(None), None))
    for cut in range(len(frame)):
        both_read(frame[:cut])
