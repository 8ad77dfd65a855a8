"""Reading and writing ext fields, by Java's rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import field, structs

from pocketmq.errors import HeaderMalformed
from pocketmq.protocol.header import (
    EmptyResponse,
    Header,
    Int32,
    Int64,
    RpcHeader,
    TopicHeader,
    read_int32,
    read_int64,
)


class Sample(TopicHeader, frozen=True, kw_only=True):
    consumer_group: str
    queue_id: Int32
    queue_offset: Int64 | None = None
    committed: bool = True
    client_id: str | None = field(name="clientID", default=None)
    unit_mode: bool | None = None


class One(Header, frozen=True, kw_only=True):
    name: str


LEAST = {"consumerGroup": "g", "queueId": "3"}


def test_wire_names_are_java_field_names() -> None:
    header = Sample(consumer_group="g", queue_id=3, queue_offset=5, client_id="c", bname="b")
    assert header.to_ext() == {
        "bname": "b",
        "consumerGroup": "g",
        "queueId": "3",
        "queueOffset": "5",
        "committed": "true",
        "clientID": "c",
    }


def test_fields_are_written_in_one_order() -> None:
    header = Sample.from_ext({"clientID": "c", "queueId": "3", "lo": "true", "consumerGroup": "g"})
    assert list(header.to_ext()) == ["lo", "consumerGroup", "queueId", "committed", "clientID"]


def test_none_is_left_out_and_false_is_not() -> None:
    assert Sample(consumer_group="g", queue_id=0, unit_mode=False, committed=False).to_ext() == {
        "consumerGroup": "g",
        "queueId": "0",
        "committed": "false",
        "unitMode": "false",
    }


def test_absent_fields_take_their_defaults() -> None:
    assert Sample.from_ext(LEAST) == Sample(consumer_group="g", queue_id=3)
    assert Sample.from_ext(LEAST).committed is True
    assert Sample.from_ext(LEAST).unit_mode is None


def test_a_field_that_is_null_counts_as_absent() -> None:
    ext: dict[str, str] = {**LEAST, "committed": None}  # type: ignore[dict-item]
    assert Sample.from_ext(ext) == Sample(consumer_group="g", queue_id=3)


def test_unknown_fields_are_passed_over() -> None:
    assert Sample.from_ext({**LEAST, "ReqT": "0", "consumer_group": "x"}) == Sample.from_ext(LEAST)


@pytest.mark.parametrize("missing", ["consumerGroup", "queueId"])
def test_a_missing_field_is_named(missing: str) -> None:
    ext = {key: value for key, value in LEAST.items() if key != missing}
    with pytest.raises(HeaderMalformed) as caught:
        Sample.from_ext(ext)
    assert (
        str(caught.value) == f"malformed header: Sample has no field {missing!r}, which is required"
    )


def test_a_wrong_number_is_named_and_shown_in_short() -> None:
    with pytest.raises(HeaderMalformed) as caught:
        Sample.from_ext({**LEAST, "queueId": "x" * 10_000})
    assert (
        str(caught.value)
        == f"malformed header: Sample has an invalid value in field 'queueId': '{'x' * 40}'"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+3", 3),
        ("-3", -3),
        ("007", 7),
        ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)),
        ("٣", 3),  # Java takes any script's digits
        ("", None),
        ("+", None),
        ("-", None),
        ("+-3", None),
        ("--3", None),
        (" 3", None),
        ("3 ", None),
        ("3\n", None),
        ("1_0", None),
        ("3.0", None),
        ("1e3", None),
        ("0x1", None),
        ("²", None),
        ("true", None),
        ("null", None),
        ("2147483648", None),
        ("-2147483649", None),
        ("9" * 1_000_000, None),
    ],
)
def test_an_int_is_read_as_java_reads_it(text: str, value: int | None) -> None:
    assert read_int32(text) == value
    if value is None:
        with pytest.raises(HeaderMalformed):
            Sample.from_ext({**LEAST, "queueId": text})
    else:
        assert Sample.from_ext({**LEAST, "queueId": text}).queue_id == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2147483648", 2**31),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
    ],
)
def test_a_long_has_64_bits(text: str, value: int | None) -> None:
    assert read_int64(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("TRUE", True),
        ("tRuE", True),
        ("false", False),
        ("", False),
        ("1", False),
        ("yes", False),
        (" true", False),
    ],
)
def test_a_boolean_is_true_or_anything_else(text: str, value: bool) -> None:
    assert Sample.from_ext({**LEAST, "committed": text}).committed is value


def test_a_header_of_one_field_and_one_of_none() -> None:
    assert One(name="x").to_ext() == {"name": "x"}
    assert One.from_ext({"name": "x"}) == One(name="x")
    assert EmptyResponse.from_ext({"name": "x"}).to_ext() == {}


def test_common_fields_are_read_from_any_5x_request() -> None:
    ext = {"ns": "n", "nsd": "true", "bname": "b", "oway": "false"}
    header = RpcHeader(ns="n", nsd=True, bname="b", oway=False)
    assert RpcHeader.from_ext(ext) == header
    assert header.to_ext() == ext


def test_headers_are_frozen_and_hashable() -> None:
    header = Sample.from_ext(LEAST)
    with pytest.raises(AttributeError):
        header.queue_id = 4  # type: ignore[misc]
    assert len({header, structs.replace(header)}) == 1


def test_a_field_of_a_type_ext_cannot_hold_is_refused_at_once() -> None:
    class Wrong(Header, frozen=True, kw_only=True):
        ratio: float

    with pytest.raises(TypeError, match="float"):
        Wrong.from_ext({})


@given(st.integers(-(2**70), 2**70))
def test_numbers_in_range_survive_and_others_are_refused(number: int) -> None:
    assert read_int32(str(number)) == (number if -(2**31) <= number < 2**31 else None)
    assert read_int64(str(number)) == (number if -(2**63) <= number < 2**63 else None)
