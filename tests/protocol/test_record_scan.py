import contextlib
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import MessageMalformed
from pocketmq.protocol import record_scan
from pocketmq.protocol.records import Record, blank_record, decode_record, encode_record
from tests.protocol.golden_messages import STORED_BY_JAVA, V1, V6_HOSTS
from tests.protocol.strategies import records


@settings(max_examples=60)
@given(st.lists(records(), max_size=8), st.binary(max_size=30))
def test_records_are_found_one_after_another(many: list[Record], before: bytes) -> None:
    pieces = [encode_record(record) for record in many]
    buffer = before + b"".join(pieces)
    expected: list[record_scan.Found] = []
    position = len(before)
    for record, piece in zip(many, pieces, strict=True):
        size = len(piece)
        text_at = position + size - len(record.property_bytes)
        fields = (record.queue_offset, record.sys_flag, len(record.body), text_at)
        expected.append((position, size, *fields))
        position += size
    assert list(record_scan.scan_records(buffer, len(before))) == expected
    assert (
        list(record_scan.scan_records(memoryview(buffer + b"more"), len(before), position))
        == expected
    )


@given(records())
def test_each_field_can_be_read_in_place(record: Record) -> None:
    raw = encode_record(record)
    view = record_scan.RecordView(memoryview(b"##" + raw + b"##"), 2)
    assert view.store_size == len(raw)
    assert view.body_crc == record.body_crc
    assert view.queue_id == record.queue_id
    assert view.flag == record.flag
    assert view.queue_offset == record.queue_offset
    assert view.commit_log_offset == record.commit_log_offset
    assert view.sys_flag == record.sys_flag
    assert view.born_timestamp_ms == record.born_timestamp_ms
    assert view.born_host_bytes == record.born_host
    assert view.store_timestamp_ms == record.store_timestamp_ms
    assert view.store_host_bytes == record.store_host
    assert view.reconsume_times == record.reconsume_times
    assert view.prepared_transaction_offset == record.prepared_transaction_offset
    assert view.body_size == len(record.body)
    assert view.stored_body == record.body
    assert view.topic_bytes == record.topic
    assert view.property_bytes == record.property_bytes


def test_a_blank_ends_the_file() -> None:
    """What stands behind a blank is what the file held before; nobody reads it."""
    file = V1 + V6_HOSTS + blank_record(100) + V1[:92]
    assert [found[:2] for found in record_scan.scan_records(file)] == [(0, 120), (120, 117)]
    assert list(record_scan.scan_records(blank_record(8))) == []


@pytest.mark.parametrize("size", [0, 7, 9, -1])
def test_a_blank_of_an_impossible_size_is_refused(size: int) -> None:
    with pytest.raises(MessageMalformed, match="blank"):
        list(record_scan.scan_records(size.to_bytes(4, "big", signed=True) + blank_record(8)[4:]))


@pytest.mark.parametrize("raw", [V1, V6_HOSTS, STORED_BY_JAVA], ids=["v1", "v6", "java"])
def test_a_record_cut_anywhere_is_noticed_and_those_before_it_are_found(raw: bytes) -> None:
    for end in range(1, len(raw)):
        found = record_scan.scan_records(V1 + raw[:end])
        assert next(found)[:2] == (0, 120)
        with pytest.raises(MessageMalformed) as caught:
            next(found)
        assert caught.value.position == 120


def test_the_unwritten_end_of_a_file_is_noticed() -> None:
    with pytest.raises(MessageMalformed, match="magic 00000000") as caught:
        list(record_scan.scan_records(V1 + bytes(500)))
    assert caught.value.position == 120


BODY_LENGTH_AT = 84
TOPIC_LENGTH_AT = 93
TEXT_LENGTH_AT = 100


def with_number(raw: bytes, at: int, size: int, value: int) -> bytes:
    return raw[:at] + value.to_bytes(size, "big", signed=True) + raw[at + size :]


@pytest.mark.parametrize(
    ("at", "size", "values", "reason"),
    [
        (0, 4, [0, 8, 90, -1, -(2**31)], "too few"),
        (0, 4, [121, 2**31 - 1], "remain"),
        (0, 4, [91, 119], "in a record|do not end"),
        (4, 4, [0, -1, -626843480], "magic"),
        (4, 4, [-626843477], "in a record|do not end"),  # the topic's length read as two bytes
        (BODY_LENGTH_AT, 4, [-1, -(2**31), 30, 2**31 - 1], "body"),
        (TOPIC_LENGTH_AT, 1, [-1, -128, 127, 25], "topic"),
        (TEXT_LENGTH_AT, 2, [-1, -32768, 17, 19, 32767], "properties"),
    ],
)
def test_lengths_that_lie_are_refused(at: int, size: int, values: list[int], reason: str) -> None:
    for value in values:
        with pytest.raises(MessageMalformed, match=reason) as caught:
            list(record_scan.scan_records(V1 + with_number(V1, at, size, value)))
        assert caught.value.position == 120


def test_a_v1_topic_has_at_most_127_bytes() -> None:
    """Its length is a signed byte: 128 and more is negative to Java, however well it adds up."""
    sound = encode_record(Record(topic=b"t" * 127, body=b""))
    size = len(sound) + 1
    longer = with_number(sound[:88] + bytes([128]) + b"t" + sound[89:], 0, 4, size)
    assert list(record_scan.scan_records(sound))
    with pytest.raises(MessageMalformed, match="topic of -128 bytes"):
        list(record_scan.scan_records(longer))


def test_properties_have_at_most_32767_bytes() -> None:
    """Their length is signed too."""
    sound = encode_record(Record(topic=b"T", body=b"", property_bytes=bytes(32767)))
    longer = with_number(sound + b"x", 0, 4, len(sound) + 1)
    longer = longer[:90] + (32768).to_bytes(2, "big") + longer[92:]
    assert list(record_scan.scan_records(sound))
    with pytest.raises(MessageMalformed, match="properties of -32768 bytes"):
        list(record_scan.scan_records(longer))


@pytest.mark.parametrize("size", [8, 39, 40, 90])
def test_a_record_smaller_than_its_head_is_refused_even_where_the_buffer_ends(size: int) -> None:
    with pytest.raises(MessageMalformed, match="too few for a message"):
        list(record_scan.scan_records(with_number(V1, 0, 4, size)[:size]))


def test_hosts_that_do_not_fit_are_refused() -> None:
    smallest = encode_record(Record(topic=b"", body=b""))
    assert len(smallest) == 91
    with pytest.raises(MessageMalformed, match="hosts"):
        list(record_scan.scan_records(with_number(smallest, 36, 4, 0x10)))


@settings(max_examples=300)
@given(st.data())
def test_damage_is_refused_and_nothing_else_escapes(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from([V1, V6_HOSTS, STORED_BY_JAVA])) * 2)
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    del raw[data.draw(st.integers(0, len(raw))) :]
    with contextlib.suppress(MessageMalformed):
        for position, size, _, _, body_size, _ in record_scan.scan_records(raw):
            assert position + size <= len(raw)
            assert len(decode_record(raw, position).body) == body_size


def test_no_declared_length_is_allocated() -> None:
    hostile = [with_number(V1, at, 4, 2**31 - 1) for at in (0, BODY_LENGTH_AT)] + [
        with_number(V1, TEXT_LENGTH_AT, 2, 32767)
    ]
    tracemalloc.start()
    try:
        for raw in hostile:
            with pytest.raises(MessageMalformed):
                list(record_scan.scan_records(raw))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_long_tags_are_not_remembered() -> None:
    """Codes of tags are cached; a peer that never repeats a long one must not fill the cache."""
    tracemalloc.start()
    try:
        for number in range(20):
            assert record_scan.tags_code(b"TAGS\x01" + b"%d" % number * 10_000)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 100_000
