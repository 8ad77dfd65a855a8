"""Plain sends by the core and by the pure functions: the same frames, the same receipts."""

import json
import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pocketmq import native
from pocketmq.client.producer.plain_frames import json_text, plain_frame
from pocketmq.client.producer.requests import Outgoing, RequestWriter, Template
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.model import Message, MessageQueue, SendReceipt, SendStatus
from pocketmq.protocol.message_ids import UniqueIds
from tests.native.both import Freed, Sink, alone, core, damaged, outcome, same

OK = SendStatus.SEND_OK
INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
HEXADECIMAL = st.text("0123456789ABCDEF", max_size=52)


PARTS = st.tuples(
    st.binary(max_size=40),
    st.binary(max_size=40),
    st.binary(max_size=40),
    HEXADECIMAL | st.text(max_size=8),
    INT64,
    st.binary(max_size=300),
    INT64,
    INT64,
)


@given(PARTS)
def test_any_parts_make_the_same_frame(parts: tuple[Any, ...]) -> None:
    same("plain_frame", *parts)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(TEXT, TEXT, TEXT, INT32, TEXT, st.binary(min_size=1, max_size=50), INT64, INT32)
def test_the_frame_is_what_the_writer_of_requests_makes(
    group: str,
    topic: str,
    broker: str,
    queue_id: int,
    tag: str,
    body: bytes,
    born_ms: int,
    opaque: int,
) -> None:
    writer = RequestWriter(group, ProducerOptions(group="g"))
    queue = MessageQueue(topic, broker, queue_id)
    template = writer.plain_template(queue)
    ids = UniqueIds(bytes(4), 7, 8, first=65_530)
    prefix, number = ids.next_parts(1_700_000_000_123)
    tail = f"\2WAIT\1true\2TAGS\1{tag}"
    frame, unique_id = plain_frame(
        template.plain, template.middle, json_text(tail), prefix, number, body, born_ms, opaque
    )
    outgoing = Outgoing(topic, body, f"UNIQ_KEY\1{unique_id}{tail}", unique_id)
    assert frame == writer.frame(outgoing, queue, opaque, born_ms)
    assert len(unique_id) == 32


# Values as brokers write them, and as nobody should
NUMBERS = (
    st.integers(-5, 70_000).map(str)
    | st.integers(-(2**66), 2**66).map(str)
    | st.sampled_from(["", "-", "-0", "00", "01", "+1", " 1", "1.0", "1e2", "9" * 18, "9" * 19])
)
WORDS = st.sampled_from(
    ["true", "false", "", "DefaultRegion", "eu", "é", "a\tb", '"', "\\", "\x7f"]
)
IDS = HEXADECIMAL | TEXT
FIELDS = st.fixed_dictionaries(
    {"queueId": NUMBERS | st.integers(0, 9), "msgId": IDS, "queueOffset": NUMBERS},
    optional={
        "transactionId": IDS | st.none(),
        "TRACE_ON": WORDS,
        "MSG_REGION": WORDS | st.none(),
        "recallHandle": IDS,
        "batchUniqId": IDS,
        "more": WORDS | st.integers() | st.lists(st.integers(), max_size=2),
    },
)
HEADERS = st.fixed_dictionaries(
    {
        "code": st.sampled_from([0, 0, 0, 10, 1, "0", -0.0]),
        "extFields": FIELDS | st.none() | st.just({}),
        "flag": st.sampled_from([1, 1, 1, 0, 3, 2**31, "1", True]),
        "opaque": st.sampled_from([77, 77, 77, 78, -77, 77.0, "77", 2**32 + 77]),
    },
    optional={
        "language": st.sampled_from(["JAVA", "PYTHON", 3]),
        "version": st.sampled_from([477, 2**31]),
        "serializeTypeCurrentRPC": st.just("JSON"),
        "remark": st.none() | TEXT,
    },
)


def framed(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack(">II", 4 + len(header) + len(body), len(header)) + header + body


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    header = draw(HEADERS)
    keys = draw(st.permutations(list(header)))
    spaced = draw(st.sampled_from([(",", ":"), (",", ":"), (", ", ": ")]))
    ascii_only = draw(st.booleans())
    text = json.dumps(
        {key: header[key] for key in keys}, separators=spaced, ensure_ascii=ascii_only
    )
    if draw(st.integers(0, 9)) == 0:  # a key that comes twice
        text = text[:-1] + ',"code":0}'
    return framed(text.encode("utf-8", "surrogatepass"), draw(st.sampled_from([b"", b"", b"x"])))


PLAIN = (
    b'{"code":0,"extFields":{"queueId":"3","transactionId":"7F","TRACE_ON":"true",'
    b'"MSG_REGION":"DefaultRegion","msgId":"7F00","queueOffset":"12"},"flag":1,'
    b'"language":"PYTHON","opaque":77,"serializeTypeCurrentRPC":"JSON","version":477}'
)


@given(answers())
@example(framed(PLAIN))
@example(framed(PLAIN.replace(b'"3"', b'"-2147483648"')))
@example(framed(PLAIN.replace(b'"3"', b'"2147483648"')))
@example(framed(PLAIN.replace(b'"12"', b'"9223372036854775808"')))
@example(framed(PLAIN.replace(b'"queueId":"3"', b'"queueId":"3","queueId":"4"')))
@example(framed(PLAIN.replace(b'"true"', b'"false"')))
@example(framed(PLAIN.replace(b'"DefaultRegion"', b'""')))
@example(framed(PLAIN + b" "))
@example(framed(PLAIN)[:-1])
@example(framed(PLAIN) + framed(PLAIN))
def test_responses_are_read_alike(data: bytes) -> None:
    same("stored_answer", data, 77)
    same("stored_batch", data, 77)


@given(st.data())
def test_damaged_responses_are_read_alike(data: st.DataObject) -> None:
    raw = data.draw(damaged(PLAIN))
    for name in ("stored_answer", "stored_batch"):
        same(name, framed(raw) if data.draw(st.booleans()) else raw, 77)
        same(name, data.draw(damaged(framed(PLAIN))), 77)


@given(st.binary(max_size=64), INT64)
def test_any_bytes_are_read_alike(data: bytes, opaque: int) -> None:
    same("stored_answer", data, opaque)
    same("stored_batch", data, opaque)


def test_a_usual_response_is_read_by_the_core_itself() -> None:
    kind, value = same("stored_answer", framed(PLAIN), 77)
    assert kind == "returned"
    assert [each for _, each in value[1:]] == ["7F00", 3, 12, "7F", None, "DefaultRegion", True]
    assert same("stored_answer", framed(PLAIN), 78) == ("returned", (type(None), None))


def test_a_response_to_a_batch_is_read_by_the_core_itself() -> None:
    for named in (False, True):
        text = b'"batchUniqId":"EF","msgId"' if named else b'"msgId"'
        said = framed(PLAIN.replace(b'"msgId"', text))
        (place, queue_id, *_), whole = alone("stored_batch", said, 77)
        assert (place, queue_id, whole) == ("7F00", 3, named)
        assert same("stored_answer", said, 77)[1][0] is (type(None) if named else tuple)


# Many at once

QUEUE = MessageQueue("t", "b", 3)
PREFIX = "7F00000100FF18B4AAC200000000"


WINDOW = Freed([])
ASKED = (4.0, 4.0, 4.5, 4.5)
"""When messages left, of those in one window."""
CANCELLED = 7


def posted(opaque: int, number: int = 7, body: bytes = b"x", tail: bytes = b"") -> tuple[Any, ...]:
    template = Template(QUEUE, b'{"code":310,"f":"', b'","k":"false"},"flag":')
    waiter = (Sink(WINDOW, opaque, cancelled=opaque == CANCELLED), 5.0, 310, 3.0)
    made = opaque, template, tail, PREFIX, number, 1_700_000, Message("t", body), QUEUE
    return *waiter, *made, "topic", "connection", ASKED[opaque % 4], WINDOW


def taken(raw: bytes, start: int, limit: int, waiting: dict[int, Any]) -> Any:
    """Make both functions hand receipts over; return what the first did, if the other did alike."""
    outcomes = []
    for function in (native.pure["take_receipts"], core.take_receipts):
        left = dict(waiting)
        WINDOW.got.clear()
        freed: list[Any] = []
        found = outcome(function, raw, start, limit, left, freed)
        outcomes.append((found, list(left), WINDOW.got[:], [each[1:] for each in freed]))
    assert outcomes[0] == outcomes[1]
    return outcomes[0]


def taken_alone(raw: bytes, waiting: dict[int, Any]) -> Any:
    """Make the core hand receipts over without the pure function; return what came of it."""
    WINDOW.got.clear()
    freed: list[Any] = []
    count, end = alone("take_receipts", raw, 0, 2**24, dict(waiting), freed)
    return count, end, [each[1:] for each in freed], WINDOW.got[:]


def said(opaque: int, number: int = 7, offset: int = 12, **changes: str) -> bytes:
    fields = {
        "queueId": "3",
        "transactionId": f"{PREFIX}{number:04X}",
        "TRACE_ON": "true",
        "MSG_REGION": "DefaultRegion",
        "msgId": f"7F{offset:030X}",
        "queueOffset": str(offset),
    }
    header = {
        "code": 0,
        "extFields": fields | changes,
        "flag": 1,
        "language": "PYTHON",
        "opaque": opaque,
        "serializeTypeCurrentRPC": "JSON",
        "version": 477,
    }
    return framed(json.dumps(header, separators=(",", ":")).encode())


@given(st.lists(st.tuples(INT32, st.integers(0, 2**40), st.binary(max_size=40)), max_size=6))
def test_the_frames_of_many_are_those_of_each(
    parts: list[tuple[int, int, bytes]],
) -> None:
    many = [posted(opaque, number, body, b"tail") for opaque, number, body in parts]
    kind, (_, frames) = same("plain_frames", many)
    assert kind == "returned"
    each = [
        plain_frame(
            template.plain, template.middle, tail, prefix, number, message.body, born_ms, opaque
        )[0]
        for _, _, _, _, opaque, template, tail, prefix, number, born_ms, message, *_ in many
    ]
    assert frames == b"".join(each)


MANY = st.lists(
    st.tuples(
        st.integers(1, 9),  # whose response
        st.integers(0, 2**16 - 1),
        st.integers(-1, 2**63),
        st.dictionaries(
            st.sampled_from(["queueId", "transactionId", "MSG_REGION", "recallHandle", "more"]),
            st.sampled_from(["3", "4", "03", "", "eu", 'a"b', "\\", "\x7f", "é"]),
            max_size=1,
        ),
    ),
    max_size=6,
)


@given(MANY, st.data())
def test_many_responses_are_read_alike(
    parts: list[tuple[int, int, int, dict[str, str]]], data: st.DataObject
) -> None:
    sound = [said(opaque, number, offset, **more) for opaque, number, offset, more in parts]
    raw = b"".join(sound)
    if data.draw(st.booleans()):
        raw = data.draw(damaged(raw))
    waiting: dict[int, Any] = {opaque: posted(opaque, opaque) for opaque in range(1, 8)}
    waiting[8] = waiting[1][:4]  # a request of another kind
    limit = data.draw(st.sampled_from([2**24, 2**24, 300]))
    taken(raw, data.draw(st.sampled_from([0, 0, 0, 5])), limit, waiting)


def test_a_response_that_is_nearly_like_the_first_is_read_alike() -> None:
    """Those after the first are compared with it: whatever differs must not be passed over."""
    waiting = {opaque: posted(opaque, opaque) for opaque in (1, 2, 3)}
    sound = said(2, 2)[8:]
    for at in range(len(sound)):
        for odd in (b"", b"x", b"0", b'"', b"\\", b",", b"]", b"\xff"):
            second = sound[:at] + odd + sound[at + 1 :]
            taken(said(1, 1) + framed(second) + said(3, 3), 0, 2**24, waiting)


def test_usual_responses_are_read_by_the_core_itself() -> None:
    waiting = {opaque: posted(opaque, opaque) for opaque in range(9)}
    usual = b"".join([said(opaque, opaque, 100 + opaque) for opaque in waiting])
    count, end, freed, got = taken_alone(usual + usual[:50], waiting)
    assert (count, end) == (9, len(usual))
    assert freed == [(2, 2, 4.0), (2, 2, 4.5), (2, 2, 4.0), (1, 1, 4.5), (1, 1, 4.0)]
    name = f"{PREFIX}0003"
    queue = waiting[3][11]
    assert got[3] == (3, SendReceipt(OK, name, f"7F{103:030X}", queue, 103, name))
    assert [opaque for opaque, _ in got] == [0, 1, 2, 3, 4, 5, 6, 8], "one was cancelled"
    other = said(0, 1, 1, MSG_REGION="eu", TRACE_ON="false", recallHandle="R", transactionId="T")
    _, _, _, [(_, receipt)] = taken_alone(other, waiting)
    place = f"7F{1:030X}", waiting[0][11], 1
    assert receipt == SendReceipt(OK, f"{PREFIX}0000", *place, "T", "R", "eu", False)
    for refused in (waiting | {0: posted(0)[:4]}, {}, {0: "no tuple"}):
        assert taken_alone(usual, refused) == (0, 0, [], [])
    assert taken_alone(said(0, queueId="4"), waiting) == (0, 0, [], [])


def test_a_response_that_comes_twice_is_left_to_others() -> None:
    waiting = {opaque: posted(opaque, opaque) for opaque in range(3)}
    once = said(0, 0)
    found, left, _, _ = taken(once + once + said(1, 1), 0, 2**24, waiting)
    assert found == ("returned", (tuple, (int, 1), (int, len(once))))
    assert left == [1, 2]


def test_what_was_answered_before_an_interrupt_is_known() -> None:
    """A signal's handler may raise where a task is woken up: then the future has its result."""

    class Interrupted(Sink):
        def set_result(self, receipt: object) -> None:
            super().set_result(receipt)
            self._cancelled = True  # that is: done
            raise ZeroDivisionError("out of a signal's handler")

    def waiting() -> dict[int, Any]:
        return {0: posted(0), 1: (Interrupted(WINDOW, 1), *posted(1)[1:]), 2: posted(2)}

    raw = b"".join(said(each, each) for each in range(3))
    for function in (native.pure["take_receipts"], core.take_receipts):
        left, freed = waiting(), list[Any]()
        with pytest.raises(ZeroDivisionError):
            function(raw, 0, 2**24, left, freed)
        assert list(left) == [2], "the next one is answered as any other response"
        assert [each[1:] for each in freed] == [(2, 2, 4.0)]
