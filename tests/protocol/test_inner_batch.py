"""Inner batches: counted, cut and numbered, whatever their bytes are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import InvalidInput, MessageMalformed
from pocketmq.protocol import DeliveryContext
from pocketmq.protocol.batch import BatchEntry, decode_batch, encode_batch
from pocketmq.protocol.inner_batch import (
    MOST_MESSAGES,
    batch_size,
    count_entries,
    entries_from,
    is_queue_of_batches,
)
from pocketmq.protocol.pulled import decode_pulled, from_offset
from pocketmq.protocol.records import Record, encode_record

entries = st.lists(
    st.builds(BatchEntry, st.binary(max_size=5), st.binary(max_size=5), st.integers(-9, 9)),
    max_size=6,
)
damages = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 255)), max_size=2)


def damaged(body: bytes, changes: list[tuple[int, int]], cut: int) -> bytes:
    raw = bytearray(body)
    for at, value in changes:
        if at < len(raw):
            raw[at] = value
    return bytes(raw[: len(raw) - cut])


@given(entries, damages, st.integers(0, 3))
def test_what_is_counted_is_what_consumers_read(
    some: list[BatchEntry], changes: list[tuple[int, int]], cut: int
) -> None:
    body = damaged(encode_batch(some), changes, cut)
    try:
        expected = len(decode_batch(body))
    except MessageMalformed as error:
        with pytest.raises(MessageMalformed, match=f"byte {error.position}"):
            count_entries(body)
        return
    if expected:
        assert count_entries(body) == expected
    else:
        with pytest.raises(InvalidInput):
            count_entries(body)


@given(entries, st.integers(0, 8), st.integers(0, 8))
def test_a_part_of_a_batch_is_read_alone(some: list[BatchEntry], first: int, most: int) -> None:
    assert entries_from(encode_batch(some), first, most) == some[first : first + most]


@given(st.binary(max_size=80), st.integers(0, 5), st.integers(0, 5))
def test_a_part_of_any_bytes_is_read_or_refused(raw: bytes, first: int, most: int) -> None:
    try:
        found = entries_from(raw, first, most)
    except MessageMalformed:
        return
    assert len(found) <= most


@pytest.mark.parametrize(
    ("flag", "text", "size"),
    [
        (192, b"INNER_NUM\x013\x02", 3),
        (128, b"A\x01b\x02INNER_NUM\x0132767\x02INNER_BASE\x019\x02", 32767),
        (64, b"INNER_NUM\x013\x02", 0),
        (0, b"INNER_NUM\x013\x02", 0),
        (192, b"", 1),
        (192, b"INNER_NUM\x010\x02", 1),
        (192, b"INNER_NUM\x01-3\x02", 1),
        (192, b"INNER_NUM\x0199999\x02", MOST_MESSAGES),
        (192, b"INNER_NUM\x01" + b"9" * 400 + b"\x02", 1),
        (192, "INNER_NUM\x01٣\x02".encode(), 1),
        (192, b"INNER_NUM\x01x\x02", 1),
    ],
)
def test_a_flag_and_a_number_say_how_many_messages_a_record_holds(
    flag: int, text: bytes, size: int
) -> None:
    record = Record(topic=b"T", body=b"", property_bytes=text, sys_flag=flag)
    assert batch_size(record) == size


def test_a_topic_says_whether_it_has_queues_of_batches() -> None:
    assert is_queue_of_batches({"queue.type": "BatchCQ"})
    assert not is_queue_of_batches({"queue.type": "SimpleCQ"})
    assert not is_queue_of_batches({})


def pulled(offset_delta: int = 0) -> bytes:
    """Return the records of a pull that began inside of a batch: offsets 7 to 9, then 10."""
    body = encode_batch([BatchEntry(b"a"), BatchEntry(b"b"), BatchEntry(b"c")])
    batch = Record(topic=b"T", body=body, sys_flag=192, queue_offset=7 - offset_delta)
    single = Record(topic=b"T", body=b"d", queue_offset=10 - offset_delta)
    return encode_record(batch) + encode_record(single)


@pytest.mark.parametrize("delta", [0, 5])
@pytest.mark.parametrize(("offset", "found"), [(0, "abcd"), (7, "abcd"), (9, "cd"), (10, "d")])
def test_messages_before_the_offset_asked_for_are_dropped(
    offset: int, found: str, delta: int
) -> None:
    messages = decode_pulled(pulled(delta), DeliveryContext(offset_delta=delta))
    assert [each.body for each in from_offset(messages, offset)] == [
        each.encode() for each in found
    ]


def test_a_plain_message_is_never_dropped() -> None:
    """Whatever offset a broker gives it."""
    messages = decode_pulled(encode_record(Record(topic=b"T", body=b"x")), DeliveryContext())
    assert from_offset(messages, 100) == messages
