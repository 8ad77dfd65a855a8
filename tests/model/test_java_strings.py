"""Java's hash codes, order and split, on values computed by Java."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.cli.admin.java_text import receipt_text
from pocketmq.model import MessageQueue, SendReceipt, SendStatus, sort_queues
from pocketmq.model.java_strings import int32, java_hash, java_order, java_sorted, java_split

JAVA_HASHES = {
    "TagA": 2598919,
    "TagB": 2598920,
    "*": 42,
    "": 0,
    "a": 97,
    "Aa": 2112,
    "BB": 2112,
    "polygenelubricants": -2147483648,
    "中文": 646394,
    "TopicA#k1": -1903240649,
    "😀": 1772899,
}


@pytest.mark.parametrize(("text", "expected"), JAVA_HASHES.items())
def test_hash_codes_are_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


@given(st.text())
def test_a_hash_code_fits_javas_int_and_follows_its_definition(text: str) -> None:
    raw = text.encode("utf-16-be", "surrogatepass")
    units = [raw[i] << 8 | raw[i + 1] for i in range(0, len(raw), 2)]
    expected = sum(unit * 31 ** (len(units) - 1 - i) for i, unit in enumerate(units))
    assert java_hash(text) == int32(expected)


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, 0), (2**31 - 1, 2**31 - 1), (2**31, -(2**31)), (-(2**31) - 1, 2**31 - 1), (2**32, 0)],
)
def test_numbers_wrap_as_javas_int_does(number: int, expected: int) -> None:
    assert int32(number) == expected


def test_order_is_by_utf16_units_not_by_code_points() -> None:
    """A character outside the basic plane sorts before U+E000 and later ones, as in Java."""
    assert java_sorted(["\ue000", "😀", "b", "a"]) == ["a", "b", "😀", "\ue000"]
    assert sorted(["\ue000", "😀"]) == ["\ue000", "😀"]


@given(st.lists(st.text(max_size=4)))
def test_the_ascii_short_cut_sorts_like_the_key(texts: list[str]) -> None:
    assert java_sorted(texts) == sorted(texts, key=java_order)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", [""]),
        ("a", ["a"]),
        ("a||b", ["a", "b"]),
        ("||a", ["", "a"]),
        ("a||", ["a"]),
        ("||", []),
        ("||||", []),
        ("a||||b", ["a", "", "b"]),
    ],
)
def test_split_drops_trailing_empty_parts_only(text: str, parts: list[str]) -> None:
    assert java_split(text, "||") == parts


def test_a_queue_prints_and_hashes_as_in_java() -> None:
    queue = MessageQueue("TopicA", "broker-a", 0)
    assert queue.java_text() == "MessageQueue [topic=TopicA, brokerName=broker-a, queueId=0]"
    assert queue.java_hash() == -103678562


def test_a_receipt_is_printed_as_by_mqadmin() -> None:
    receipt = SendReceipt(
        status=SendStatus.SEND_OK,
        message_id="M1",
        offset_message_id="O1",
        queue=MessageQueue("TopicA", "broker-a", 0),
        queue_offset=7,
    )
    assert receipt_text(receipt) == (
        "SendResult [sendStatus=SEND_OK, msgId=M1, offsetMsgId=O1, messageQueue=MessageQueue "
        "[topic=TopicA, brokerName=broker-a, queueId=0], queueOffset=7, recallHandle=null]"
    )


def test_queues_sort_by_topic_then_broker_then_number() -> None:
    queues = [
        MessageQueue("b", "x", 0),
        MessageQueue("a", "y", 1),
        MessageQueue("a", "y", 0),
        MessageQueue("a", "x", 10),
        MessageQueue("a", "x", 9),
    ]
    assert sort_queues(queues) == [queues[4], queues[3], queues[2], queues[1], queues[0]]
    assert (
        sort_queues({MessageQueue("\ue000", "b", 0), MessageQueue("😀", "b", 0)})[0].topic == "😀"
    )
