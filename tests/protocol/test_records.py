from itertools import accumulate

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.errors import InvalidInput, MessageMalformed
from pocketmq.protocol import RecordView
from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.record_scan import scan_records
from pocketmq.protocol.records import (
    Record,
    blank_record,
    decode_record,
    encode_record,
    pack_record,
)
from tests.protocol.golden_messages import V1, V1_RECORD
from tests.protocol.strategies import int64s, records

STORE_HOST = encode_host("127.0.0.1:10911")


@given(records())
def test_a_record_survives_the_round_trip(record: Record) -> None:
    raw = encode_record(record)
    assert decode_record(raw) == record
    assert decode_record(memoryview(bytearray(b"..." + raw + b"...")), 3, 3 + len(raw)) == record


@given(records())
def test_only_topics_longer_than_127_bytes_get_the_second_magic(record: Record) -> None:
    expected = "daa320ab" if len(record.topic) > 127 else "daa320a7"
    assert encode_record(record)[4:8].hex() == expected


def test_host_bits_follow_the_hosts() -> None:
    record = Record(topic=b"T", body=b"", sys_flag=0x37, born_host=encode_host("[::1]:1"))
    assert decode_record(encode_record(record)).sys_flag == 0x17


@given(records(), int64s)
def test_a_record_is_packed_with_the_places_it_is_given(record: Record, now_ms: int) -> None:
    placed = msgspec.structs.replace(
        record,
        queue_offset=100,
        commit_log_offset=5000,
        store_timestamp_ms=now_ms,
        store_host=STORE_HOST,
        sys_flag=record.sys_flag & ~0x20,
    )
    assert pack_record(record, 100, 5000, now_ms, STORE_HOST) == encode_record(placed)


@settings(max_examples=50)
@given(st.lists(records(), max_size=6))
def test_records_back_to_back_are_found_where_they_begin(many: list[Record]) -> None:
    packed = [encode_record(record) for record in many]
    starts = list(accumulate(map(len, packed), initial=0))[:-1]
    assert [found[0] for found in scan_records(b"".join(packed))] == starts


@pytest.mark.parametrize("places", [(1 << 63, 0, 0), (0, 1 << 63, 0), (0, 0, 1 << 63)])
def test_a_place_past_64_bits_is_refused(places: tuple[int, int, int]) -> None:
    with pytest.raises(InvalidInput):
        pack_record(V1_RECORD, *places, STORE_HOST)


@pytest.mark.parametrize(
    "wrong",
    [
        {"queue_id": 1 << 31},
        {"flag": -(1 << 31) - 1},
        {"sys_flag": 1 << 32},
        {"born_timestamp_ms": 1 << 63},
        {"reconsume_times": 1 << 40},
        {"prepared_transaction_offset": 1 << 63},
        {"property_bytes": bytes(32768)},
        {"topic": bytes(32768)},
        {"born_host": bytes(4)},
        {"store_host": bytes(19)},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_record_that_could_not_be_packed_cannot_be_made(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        msgspec.structs.replace(V1_RECORD, **wrong)


def test_the_largest_texts_fit() -> None:
    record = Record(topic=bytes(32767), body=b"x", property_bytes=bytes(32767))
    read = decode_record(encode_record(record))
    assert (read.topic, read.property_bytes, read.body) == (bytes(32767), bytes(32767), b"x")


def test_without_a_checksum_the_bodys_own_is_written() -> None:
    raw = encode_record(V1_RECORD)
    assert RecordView(raw, 0).crc_matches()
    assert raw == V1


def test_a_blank_says_how_much_is_left() -> None:
    assert blank_record(0x1234).hex() == "00001234cbd43194"
    with pytest.raises(InvalidInput):
        blank_record(7)
    with pytest.raises(InvalidInput):
        blank_record(1 << 31)


@pytest.mark.parametrize("raw", [b"", blank_record(8), bytes(200), V1[:-1]])
def test_where_no_record_is_none_is_read(raw: bytes) -> None:
    with pytest.raises(MessageMalformed):
        decode_record(raw)
