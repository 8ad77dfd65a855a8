"""The short way of usual pops and acks gives what the long one does, or leaves it to that."""

from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.client.pop.popped import handle_of, read_popped
from pocketmq.client.pop.questions import PopQuestions
from pocketmq.client.pop.usual import is_done, read_usual_pop
from pocketmq.client.pop.usual_acks import UsualAcks
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue, Subscription
from pocketmq.protocol import Command, ReceivedMessage
from pocketmq.protocol.command import read_command
from pocketmq.protocol.frame import FrameReader
from pocketmq.protocol.handles import (
    PopQueue,
    TopicMark,
    write_message_offsets,
    write_start_offsets,
)
from pocketmq.protocol.repeated import RepeatedRequest
from pocketmq.protocol.requests.pop import PopResponse
from tests.client.pop.shelves import record

BROKER, TOPIC = "broker-a", "orders"
QUESTIONS = PopQuestions("billing", ordered=False, from_first=True, grace=3.0)
RUNS = st.tuples(st.integers(3, 9) | st.integers(4090, 4100), st.integers(2, 9)).map(
    lambda run: list(range(run[0], run[0] + run[1]))
)
"""Offsets one after another, as of most pops."""
read_usual = partial(read_usual_pop, BROKER, TOPIC)


def response(
    offsets: list[int], *, topic: str = TOPIC, queue_id: int = 3, mark: TopicMark | None = None
) -> Command:
    """A broker's response with the messages of one queue."""
    queue = PopQueue(TopicMark.of(topic) if mark is None else mark, queue_id)
    header = PopResponse(
        pop_time=1_700_000_000_000,
        invisible_time=60_000,
        revive_qid=2,
        rest_num=0,
        start_offset_info=write_start_offsets({queue: offsets[0]}),
        msg_offset_info=write_message_offsets({queue: offsets}),
    )
    body = b"".join(record(each, b"body", topic=topic, queue_id=3) for each in offsets)
    return Command(0, 7, flag=1, ext_fields=header.to_ext(), body=body)


def read_long(frame: bytes) -> list[Any]:
    (found,) = FrameReader().feed(frame)
    answer = read_command(found)
    return read_popped(answer.header(PopResponse), answer.body, BROKER, TOPIC).messages


def body_of(message: ReceivedMessage) -> bytes | str:
    """Return the body, or why it cannot be read: a damaged flag may say that it is compressed."""
    try:
        return message.body
    except MQError as error:
        return str(error)


def facts(messages: list[Any]) -> list[object]:
    return [
        (each.topic, each.queue_offset, body_of(each), dict(each.properties), str(handle_of(each)))
        for each in messages
    ]


@pytest.mark.parametrize("topic", [TOPIC, "%RETRY%billing_orders", "%RETRY%billing+orders"])
@pytest.mark.parametrize("offsets", [[5], [5, 6, 9], list(range(100, 132))])
def test_a_usual_response_is_read_in_one_step(topic: str, offsets: list[int]) -> None:
    frame = response(offsets, topic=topic).encode()
    messages = read_usual(frame, 7)
    assert messages is not None
    assert facts(messages) == facts(read_long(frame))


def changed(command: Command, **fields: str | None) -> bytes:
    ext = {key: value for key, value in (command.ext | fields).items() if value is not None}
    return msgspec.structs.replace(command, ext_fields=ext).encode()


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        response([5]).encode()[:-1],
        response([5]).encode() + b"\0",
        msgspec.structs.replace(response([5]), opaque=8).encode(),
        msgspec.structs.replace(response([5]), flag=0).encode(),
        msgspec.structs.replace(response([5]), code=210).encode(),
        response([5], queue_id=4).encode(),
        response([5], mark=TopicMark.RETRY).encode(),
        response([5], topic="%RETRY%billing_orders", mark=TopicMark.RETRY_V2).encode(),
        changed(response([5]), msgOffsetInfo="0 3 5,6"),
        changed(response([5]), msgOffsetInfo="0 4 5"),
        changed(response([5]), msgOffsetInfo="0 3 99999999999999999999"),
        changed(response([5]), startOffsetInfo="0 3 5;0 4 6"),
        changed(response([5]), startOffsetInfo=None),
        changed(response([5]), popTime=None),
        changed(response([5]), orderCountInfo="0 3 2"),
        msgspec.structs.replace(response([5]), body=b"x" * 100).encode(),
    ],
)
def test_anything_else_is_left_to_the_long_way(frame: bytes) -> None:
    assert read_usual(frame, 7) is None


def test_messages_that_were_popped_before_are_left_to_the_long_way() -> None:
    header = response([5]).ext
    for name in ("POP_CK", "1ST_POP_TIME"):
        body = record(5, b"body", queue_id=3, properties={name: "1"})
        assert read_usual(Command(0, 7, flag=1, ext_fields=header, body=body).encode(), 7) is None


@settings(max_examples=300)
@given(st.integers(0, 400), st.binary(min_size=1, max_size=4), st.booleans())
def test_damaged_responses_are_read_as_the_long_way_does_or_not_at_all(
    at: int, bytes_there: bytes, several: bool
) -> None:
    frame = bytearray(response([5, 6] if several else [5]).encode())
    frame[at : at + len(bytes_there)] = bytes_there
    messages = read_usual(bytes(frame), 7)
    if messages is not None:
        try:
            expected = read_long(bytes(frame))
        except (MQError, ValueError) as error:
            raise AssertionError("only the long way refuses it") from error
        assert facts(messages) == facts(expected)


@given(st.integers(0, 2**31 - 1), st.integers(1, 32), st.sampled_from(["*", 'a "opaque":0', "é"]))
def test_a_repeated_pop_differs_by_its_number_alone(opaque: int, most: int, tag: str) -> None:
    question = QUESTIONS.pop(
        MessageQueue(TOPIC, BROKER, -1),
        Subscription(topic=TOPIC, sub_string=tag),
        TOPIC,
        most=most,
        invisible=60.0,
        wait=0.0,
        asked=0.0,
    )
    asked = next(question)
    request = RepeatedRequest(Command.request(asked.code, 0, asked.header))
    assert request.frame(opaque) == Command.request(asked.code, opaque, asked.header).encode()


@given(
    st.integers(0, 10**17),
    st.integers(0, 2**31 - 1),
    st.sampled_from(["0", "1", "2"]),
    st.sampled_from(["orders", "shop%orders", 'o"r']),
)
def test_a_usual_ack_is_written_as_the_long_way_does(
    offset: int, opaque: int, mark: str, topic: str
) -> None:
    (message,) = read_long(response([5]).encode())
    handle = msgspec.structs.replace(handle_of(message), queue_offset=offset, mark=TopicMark(mark))
    made = UsualAcks("billing", str).request(str(handle), topic)
    assert made is not None
    broker, frame = made
    asked = next(QUESTIONS.ack_one(BROKER, topic, handle))
    assert broker == BROKER
    assert frame(opaque) == Command.request(asked.code, opaque, asked.header).encode()


@given(
    st.lists(st.integers(3, 5000), min_size=2, max_size=40) | RUNS,
    st.integers(0, 2**31 - 1),
    st.sampled_from(["0", "1", "2"]),
    st.sampled_from(["orders", "shop%orders", 'o"r', '"it":']),
)
def test_usual_acks_of_several_messages_are_written_as_the_long_way_does(
    offsets: list[int], opaque: int, mark: str, topic: str
) -> None:
    (message,) = read_long(response([3]).encode())
    like = msgspec.structs.replace(handle_of(message), start_offset=3, mark=TopicMark(mark))
    handles = [msgspec.structs.replace(like, queue_offset=offset) for offset in offsets]
    made = UsualAcks("billing", str).request_together([str(handle) for handle in handles], topic)
    acks = [(topic, handle) for handle in handles]
    if not QUESTIONS.may_be_together(BROKER, acks):
        assert made is None
        return
    assert made is not None
    broker, frame = made
    asked = next(QUESTIONS.ack_together(BROKER, acks))
    assert broker == BROKER
    expected = Command.request(asked.code, opaque, asked.header, asked.body)
    assert frame(opaque) == expected.encode()


@pytest.mark.parametrize(
    "other",
    ["", "3 1 2 0 0 broker-a 0", "3 1 2 0 0 broker-a 0 x", "3 1 2 0 0 broker-a 1 4",
     "3 1 2 0 0 broker-a 0 5\n3 1 2 0 0 broker-a 0 6", "3 1 2 0 0 broker-a 0 2"],
)  # fmt: skip
def test_messages_that_did_not_come_together_are_left_to_the_long_way(other: str) -> None:
    acks = UsualAcks("billing", str)
    first = "3 1 2 0 0 broker-a 0 3"
    assert acks.request_together([first, first], TOPIC) is not None
    assert acks.request_together([first, other], TOPIC) is None


@pytest.mark.parametrize(
    "handle",
    ["", "0 1 2 3 0 broker-a 0", "0 1 2 3 4 broker-a 0 1", '0 1 2 3 0 b"a 0 1', "0 1 -2 3"],
)
def test_an_unusual_handle_is_left_to_the_long_way(handle: str) -> None:
    assert UsualAcks("billing", str).request(handle, TOPIC) is None


def test_only_a_whole_response_without_an_error_says_done() -> None:
    done = Command(0, 7, flag=1)
    assert is_done(done.encode(), 7)
    others = [
        done.encode()[:-1],
        done.encode() * 2,
        b"",
        msgspec.structs.replace(done, code=1).encode(),
        msgspec.structs.replace(done, flag=0).encode(),
        b"\0\0\0\x06\0\0\0\x02{]",
    ]
    assert not any(is_done(each, 7) for each in others)
    assert not is_done(done.encode(), 8)
