from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import InvalidInput
from pocketmq.protocol import message_ids
from pocketmq.protocol.hosts import encode_host

IP = bytes((10, 1, 2, 3))
JUNE = 1_717_200_000_000  # 2024-06-01T00:00:00Z
JULY = 1_719_792_000_000


@given(st.ip_addresses(), st.integers(0, 65535), st.integers(0, 2**63 - 1))
def test_offset_ids_survive_the_round_trip(ip: object, port: int, offset: int) -> None:
    host = f"[{ip}]:{port}" if ":" in str(ip) else f"{ip}:{port}"
    text = message_ids.encode_offset_id(encode_host(host), offset)
    assert len(text) == (56 if ":" in str(ip) else 32)
    assert (
        message_ids.parse_offset_id(text)
        == message_ids.parse_offset_id(text.lower())
        == message_ids.OffsetId(host, offset)
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7F",
        "7F00000100002A9F00000000000010",
        "7F00000100002A9F000000000000100G",
        "7F00000100002A9F 000000000001000",
        "７F00000100002A9F0000000000001000",
        "7F00000100010A9F0000000000001000",  # port 68255
        "7F00000180002A9F0000000000001000",  # negative port
        "7F00000100002A9FF000000000001000",  # negative offset
    ],
)
def test_text_that_is_no_offset_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        message_ids.parse_offset_id(text)


def test_an_offset_id_needs_a_host_and_an_offset_of_the_right_size() -> None:
    with pytest.raises(InvalidInput):
        message_ids.encode_offset_id(IP, 0)
    with pytest.raises(InvalidInput):
        message_ids.encode_offset_id(encode_host("10.1.2.3:1"), 1 << 63)


@given(
    st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16),
    st.integers(0, 2**22),
    st.integers(0, 2**32 - 1),
    st.integers(0, JULY - JUNE - 1),
    st.integers(0, 2**20),
)
def test_unique_ids_are_read_back(
    ip: bytes, pid: int, loader_hash: int, passed: int, first: int
) -> None:
    text = message_ids.UniqueIds(ip, pid, loader_hash, first=first).next_id(JUNE + passed)
    assert len(text) == (32 if len(ip) == 4 else 56)
    parsed = message_ids.parse_unique_id(text)
    assert parsed == message_ids.UniqueId(
        parsed.ip, pid & 0xFFFF, loader_hash, passed, first & 0xFFFF
    )


def test_ids_made_at_once_are_those_made_one_by_one() -> None:
    many, one = message_ids.UniqueIds(IP, 7, 8), message_ids.UniqueIds(IP, 7, 8)
    assert many.next_ids(JUNE, 5) == [one.next_id(JUNE) for _ in range(5)]
    prefix, first = many.take_run(JUNE, 3)
    run = message_ids.numbered_ids(prefix, range(first, first + 3))
    assert run == [one.next_id(JUNE) for _ in range(3)]
    assert many.take_run(JUNE, 0) == (prefix, 0)
    assert many.next_id(JUNE) == one.next_id(JUNE)
    assert many.next_id(JUNE + 1) == one.next_id(JUNE + 1)


def test_the_counter_wraps_after_65536_ids() -> None:
    ids = message_ids.UniqueIds(IP, 7, 8)
    made = ids.next_ids(JUNE, 65537)
    assert len(set(made)) == 65536
    assert made[0] == made[-1]
    assert made[-2].endswith("FFFF")


def test_the_time_starts_again_with_each_month() -> None:
    ids = message_ids.UniqueIds(IP, 7, 8)
    assert message_ids.parse_unique_id(ids.next_id(JULY - 1)).ms_of_month == JULY - 1 - JUNE
    assert message_ids.parse_unique_id(ids.next_id(JULY)).ms_of_month == 0
    assert message_ids.parse_unique_id(ids.next_id(JULY + 5)).ms_of_month == 5


def test_a_clock_set_back_a_little_counts_as_the_months_beginning() -> None:
    """Java's rule: less than 1 000 000 ms before the month began is 0, more wraps around."""
    ids = message_ids.UniqueIds(IP, 7, 8)
    ids.next_id(JULY)
    assert message_ids.parse_unique_id(ids.next_id(JULY - 1)).ms_of_month == 0
    assert message_ids.parse_unique_id(ids.next_id(JULY - 999_999)).ms_of_month == 0
    assert (
        message_ids.parse_unique_id(ids.next_id(JULY - 1_000_000)).ms_of_month == 2**32 - 1_000_000
    )


def test_months_begin_at_local_midnight() -> None:
    two_hours = 7_200_000
    ids = message_ids.UniqueIds(IP, 7, 8, utc_offset_ms=two_hours)
    assert (
        message_ids.parse_unique_id(ids.next_id(JULY - two_hours - 1)).ms_of_month
        == JULY - JUNE - 1
    )
    assert message_ids.parse_unique_id(ids.next_id(JULY - two_hours)).ms_of_month == 0


@given(
    st.integers(86_400, 253_000_000_000),  # seconds, up to the year 9987
    st.integers(-12 * 60, 14 * 60),
)
def test_months_are_those_of_the_calendar(seconds: int, minutes: int) -> None:
    zone = timezone(timedelta(minutes=minutes))
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    local = (epoch + timedelta(seconds=seconds)).astimezone(zone)
    start = local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    end = (start + timedelta(days=31)).replace(day=1)
    millisecond = timedelta(milliseconds=1)
    span = message_ids.month_span(1000 * seconds, minutes * 60_000)
    assert span == ((start - epoch) // millisecond, (end - epoch) // millisecond)


def test_an_address_of_another_size_is_refused() -> None:
    with pytest.raises(InvalidInput):
        message_ids.UniqueIds(b"12345", 7, 8)


@pytest.mark.parametrize("text", ["", "0A01020311711B2A3C4D00ABCDEF000", "X" * 32, "0" * 55])
def test_text_that_is_no_unique_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        message_ids.parse_unique_id(text)
