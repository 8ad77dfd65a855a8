"""Offsets as JSON, and places as users name them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.blocking.record_reader import Bounds
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue
from pocketmq.spark.offsets import EARLIEST, LATEST, OffsetSpec, StreamOffset, lag, read_place

A0, A1 = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-a", 1)
queues = st.builds(
    MessageQueue, st.sampled_from(["orders", "%RETRY%g"]), st.sampled_from("ab"), st.integers(0, 99)
)
tables = st.dictionaries(queues, st.integers(0, 2**60), max_size=8)


@given(tables, tables, st.booleans())
def test_an_offset_survives_spark_s_json(
    at: dict[MessageQueue, int], begin: dict[MessageQueue, int], fresh: bool
) -> None:
    offset = StreamOffset(at, begin, fresh)
    assert StreamOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


def test_an_offset_reads_as_people_expect_it() -> None:
    assert StreamOffset({A1: 5, A0: 3}, {A1: 2}).to_json() == {
        "orders": {"broker-a": {"0": 3, "1": 5}},
        "@begin": {"orders": {"broker-a": {"1": 2}}},
    }


def test_places_are_words_or_offsets_of_queues() -> None:
    held = Bounds(10, 20)
    place = read_place('{"orders": {"broker-a": {"0": 12, "1": -1}}}', EARLIEST)
    other = MessageQueue("orders", "broker-b", 0)
    assert [place.of(queue, held, int) for queue in (A0, A1, other)] == [12, 20, 10]
    assert read_place(" Earliest", LATEST).of(A0, held, int) == 10
    assert read_place("latest", EARLIEST).of(A0, held, int) == 20
    assert OffsetSpec(time_ms=99).of(A0, held, lambda ms: ms + 1) == 100


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("soon", "must be earliest, latest or JSON"),
        ('{"orders": 5}', "5 is not an object"),
        ('{"orders": {"a": {"x": 5}}}', "'x' is not a queue number"),
        ('{"orders": {"a": {"0": -3}}}', "-3 is not an offset"),
        ('{"orders": {"a": {"0": true}}}', "True is not an offset"),
        ("[1]", "is not an object"),
    ],
)
def test_a_place_that_does_not_read_is_explained(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        read_place(text, EARLIEST)


def test_lag_is_what_is_left_and_never_negative() -> None:
    assert lag({A0: 10, A1: 5}, {A0: 4, A1: 7}) == {A0: 6, A1: 0}
    assert lag({A0: 10}, {}) == {A0: 0}
