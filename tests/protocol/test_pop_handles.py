"""Pop handles and infos, compared with strings that RocketMQ's own classes made and read."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import HeaderMalformed
from pocketmq.protocol import handles

VECTORS = Path(__file__).parents[1] / "vectors" / "java-handles.jsonl"
CASES = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
FIRST = handles.PopQueue(handles.TopicMark.NORMAL, 5)  # Java appends to a first entry, `0 5 5`


def cases(kind: str) -> list[Any]:
    found = [case for case in CASES if case["kind"] == kind]
    assert found
    return found


def key(where: handles.PopQueue | handles.PopPlace) -> str:
    """Return the key under which Java keeps an entry."""
    if isinstance(where, handles.PopPlace):
        return f"{where.mark.value}@qo{where.queue_id}%{where.queue_offset}"
    return f"{where.mark.value}@{where.queue_id}"


def test_handles_are_written_as_java_writes_them() -> None:
    for case in cases("handle"):
        start, popped, invisible, revive, topic, broker, queue, *offset = case["parts"]
        handle = handles.PopHandle(
            start_offset=start,
            pop_time_ms=popped,
            invisible_time_ms=invisible,
            revive_queue_id=revive,
            mark=handles.TopicMark.of(topic),
            broker_name=broker,
            queue_id=queue,
            queue_offset=offset[0] if offset else None,
        )
        assert str(handle) == case["result"]
        assert handles.PopHandle.parse(case["result"]) == handle


@pytest.mark.parametrize("case", cases("read handle"), ids=lambda c: c["parts"][0] or "empty")
def test_handles_are_read_or_refused_as_java_does(case: Any) -> None:
    (text,) = case["parts"]
    if "result" not in case:
        with pytest.raises(HeaderMalformed):
            handles.PopHandle.parse(text)
        return
    start, popped, invisible, revive, mark, broker, queue, ordered, *offset = case["result"]
    handle = handles.PopHandle.parse(text)
    assert handle == handles.PopHandle(
        start_offset=start,
        pop_time_ms=popped,
        invisible_time_ms=invisible,
        revive_queue_id=revive,
        mark=handles.TopicMark(mark),
        broker_name=broker,
        queue_id=queue,
        queue_offset=offset[0] if offset else None,
    )
    assert handle.is_ordered is ordered


def test_a_mark_java_does_not_write_is_refused() -> None:
    with pytest.raises(HeaderMalformed, match="'7' is not a valid topic marker"):
        handles.PopHandle.parse("1 2 3 4 7 b 6")


def test_marks_lead_back_to_the_topic() -> None:
    for case in cases("real"):
        topic, group, mark = case["parts"]
        assert handles.TopicMark(mark).real_topic(topic, group) == case["result"]


def test_infos_are_written_as_java_writes_them() -> None:
    for case in cases("starts"):
        topic, queue, start = case["parts"]
        starts = {FIRST: 5, handles.PopQueue(handles.TopicMark.of(topic), queue): start}
        assert handles.write_start_offsets(starts) == case["result"]
    for case in cases("offsets"):
        topic, queue, *offsets = case["parts"]
        taken = {FIRST: [5], handles.PopQueue(handles.TopicMark.of(topic), queue): offsets}
        assert handles.write_message_offsets(taken) == case["result"]
    for case in cases("counts"):
        topic, queue, offset, count = case["parts"]
        mark = handles.TopicMark.of(topic)
        counts: dict[handles.PopQueue | handles.PopPlace, int] = {
            FIRST: 5,
            handles.PopQueue(mark, queue): count,
        }
        counts[handles.PopPlace(mark, queue, offset)] = count
        assert handles.write_order_counts(counts) == case["result"]


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        ("read starts", handles.read_start_offsets),
        ("read offsets", handles.read_message_offsets),
        ("read counts", handles.read_order_counts),
    ],
)
def test_infos_are_read_or_refused_as_java_does(kind: str, read: Any) -> None:
    for case in cases(kind):
        (text,) = case["parts"]
        # Java does not look at keys; only counts have any use for a place in a queue.
        if "result" not in case or ("qo" in text and kind != "read counts"):
            with pytest.raises(HeaderMalformed):
                read(text)
            continue
        found = {key(where): value for where, value in read(text).items()}
        assert json.loads(json.dumps(found)) == case["result"], text


@pytest.mark.parametrize(
    "read", [handles.read_start_offsets, handles.read_message_offsets, handles.read_order_counts]
)
def test_no_info_is_an_empty_one(read: Any) -> None:
    assert read(None) == {}


@pytest.mark.parametrize("text", ["7 3 1", "0 x 1", "0 qo3 1", "0 qo3%x 1", "0 qo% 1"])
def test_keys_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(HeaderMalformed):
        handles.read_order_counts(text)


def test_a_count_for_the_place_beats_one_for_the_queue() -> None:
    counts = handles.read_order_counts("0 qo3%100 2;0 3 1")
    assert handles.order_count(counts, handles.PopPlace(handles.TopicMark.NORMAL, 3, 100)) == 2
    assert handles.order_count(counts, handles.PopPlace(handles.TopicMark.NORMAL, 3, 101)) == 1
    assert handles.order_count(counts, handles.PopPlace(handles.TopicMark.RETRY, 3, 100)) == 0


def test_queues_without_messages_are_left_out() -> None:
    assert (
        handles.write_message_offsets(
            {FIRST: [], handles.PopQueue(handles.TopicMark.RETRY, 0): [7, 8]}
        )
        == "1 0 7,8"
    )


LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
QUEUES = st.builds(handles.PopQueue, st.sampled_from(handles.TopicMark), INTS)
PLACES = st.builds(handles.PopPlace, st.sampled_from(handles.TopicMark), INTS, LONGS)


@given(
    st.dictionaries(QUEUES, LONGS),
    st.dictionaries(QUEUES, st.lists(LONGS, min_size=1).map(tuple)),
    st.dictionaries(QUEUES | PLACES, INTS),
)
def test_infos_survive_being_written_and_read(starts: Any, offsets: Any, counts: Any) -> None:
    assert handles.read_start_offsets(handles.write_start_offsets(starts)) == starts
    assert handles.read_message_offsets(handles.write_message_offsets(offsets)) == offsets
    assert handles.read_order_counts(handles.write_order_counts(counts)) == counts


@given(st.text(alphabet="0123 ;,%qo-+x", max_size=30))
def test_arbitrary_text_is_read_or_refused_as_malformed(text: str) -> None:
    for read in (
        handles.PopHandle.parse,
        handles.read_start_offsets,
        handles.read_message_offsets,
        handles.read_order_counts,
    ):
        try:
            read(text)
        except HeaderMalformed:
            continue
