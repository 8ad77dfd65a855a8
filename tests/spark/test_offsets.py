"""Offsets as JSON, and places as users name them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.blocking.record_reader import Bounds
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue
from pocketmq.spark.offsets import (
    EARLIEST,
    LATEST,
    FirstMessage,
    OffsetSpec,
    StreamOffset,
    lag,
    read_place,
    read_times,
)
from pocketmq.spark.planning import recreated, suspects

A0, A1 = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-a", 1)
queues = st.builds(
    MessageQueue, st.sampled_from(["orders", "%RETRY%g"]), st.sampled_from("ab"), st.integers(0, 99)
)
tables = st.dictionaries(queues, st.integers(0, 2**60), max_size=8)


firsts = st.dictionaries(
    queues, st.builds(FirstMessage, st.integers(0, 99), st.integers(-1, 2**60)), max_size=8
)


@given(tables, tables, st.booleans(), firsts)
def test_an_offset_survives_spark_s_json(
    at: dict[MessageQueue, int],
    begin: dict[MessageQueue, int],
    fresh: bool,
    since: dict[MessageQueue, FirstMessage],
) -> None:
    offset = StreamOffset(at, begin, fresh, since)
    assert StreamOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


def test_an_offset_reads_as_people_expect_it() -> None:
    offset = StreamOffset({A1: 5, A0: 3}, {A1: 2}, since={A0: FirstMessage(0, 99)})
    assert offset.to_json() == {
        "orders": {"broker-a": {"0": 3, "1": 5}},
        "@begin": {"orders": {"broker-a": {"1": 2}}},
        "@since": {"orders": {"broker-a": {"0": [0, 99]}}},
    }


@pytest.mark.parametrize("value", [5, [1], [1, 2, 3], ["0", 1], [True, 1], None])
def test_a_checkpoint_that_does_not_read_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="is not an offset and a time"):
        StreamOffset.from_json({"@since": {"orders": {"broker-a": {"0": value}}}})


@pytest.mark.parametrize("found", [0, "5", [1], None, {"orders": {"0": 5}}, {"logOffset": 4}])
def test_the_checkpoint_of_another_source_is_named(found: Any) -> None:
    with pytest.raises(InvalidInput, match=r"of another source: .* use another checkpointLocation"):
        StreamOffset.from_json(found)


@pytest.mark.parametrize(
    ("was", "now", "another"),
    [
        ((0, 50), (0, 50), False),
        ((0, 50), (0, 51), True),
        ((0, 50), (0, 49), True),  # a clock that was set back
        ((0, 50), (7, 80), False),  # old messages expired
        ((7, 80), (0, 50), False),  # a slave holds them still
        ((7, 80), (0, 90), True),
        ((7, 80), (0, 80), False),
        ((0, -1), (0, 90), False),  # it was empty
        ((0, 50), (0, -1), False),  # it is empty
    ],
)
def test_the_first_message_tells_a_recreated_queue(
    was: tuple[int, int], now: tuple[int, int], another: bool
) -> None:
    kept, seen = {A0: FirstMessage(*was)}, {A0: FirstMessage(*now), A1: FirstMessage(0, 1)}
    assert recreated(kept, seen) == ([A0] if another else [])
    if another:
        assert A0 in suspects(kept, {queue: first.stored_ms for queue, first in seen.items()})


def test_queues_are_looked_at_closely_only_if_their_first_message_differs() -> None:
    kept = {A0: FirstMessage(0, 50)}
    assert suspects(kept, {A0: 50}) == []
    assert suspects(kept, {A0: -1}) == []
    assert suspects(kept, {A0: 51, A1: -1}) == [A0, A1]


def test_places_are_words_or_offsets_of_queues() -> None:
    held = Bounds(10, 20)
    place = read_place('{"orders": {"broker-a": {"0": 12, "1": -1}}}', EARLIEST)
    other = MessageQueue("orders", "broker-b", 0)
    assert [place.of(queue, held, int) for queue in (A0, A1, other)] == [12, 20, 10]
    assert read_place(" Earliest", LATEST).of(A0, held, int) == 10
    assert read_place("latest", EARLIEST).of(A0, held, int) == 20
    assert OffsetSpec(time_ms=99).of(A0, held, lambda ms: ms + 1) == 100
    assert read_place("Group", EARLIEST, group=True) == OffsetSpec(EARLIEST, of_group=True)
    times = read_times('{"orders": {"broker-a": {"0": 99}}}', EARLIEST)
    assert [times.of(queue, held, lambda ms: ms + 1) for queue in (A0, A1)] == [100, 10]
    assert (times.times([A0, A1]), times.latest_time()) == ({A0: 99}, 99)
    assert OffsetSpec(time_ms=5).times([A0, A1]) == {A0: 5, A1: 5}


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


@pytest.mark.parametrize("value", ["1", -1, True, 1.5])
def test_times_of_queues_are_milliseconds(value: object) -> None:
    with pytest.raises(InvalidInput, match="is not a time in milliseconds"):
        read_times(json.dumps({"orders": {"broker-a": {"0": value}}}), EARLIEST)


def test_lag_is_what_is_left_and_never_negative() -> None:
    assert lag({A0: 10, A1: 5}, {A0: 4, A1: 7}) == {A0: 6, A1: 0}
    assert lag({A0: 10}, {}) == {A0: 0}
