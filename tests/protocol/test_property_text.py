import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.errors import InvalidInput
from pocketmq.protocol import property_text

plain = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1)
values = st.text(st.characters(codec="utf-8", exclude_characters="\x02"), min_size=1)
# Few letters and many separators, so that all the odd shapes turn up.
odd = st.lists(st.sampled_from([b"A", b"B", b"AB", b"\x01", b"\x02", b"\xc3", b"\xa4"])).map(
    b"".join
)


@given(st.dictionaries(plain, values, max_size=20))
def test_what_is_written_is_read_back(properties: dict[str, str]) -> None:
    raw = property_text.encode_properties(properties)
    assert property_text.decode_properties(raw) == properties
    assert property_text.decode_properties(raw[:-1]) == properties  # without the last separator
    for name, value in properties.items():
        assert property_text.find_property(raw, name.encode()) == value.encode()


@given(odd)
def test_finding_one_property_agrees_with_reading_all(raw: bytes) -> None:
    read = {}
    for piece in raw.split(b"\x02"):
        name, _, value = piece.partition(b"\x01")
        if name and value:
            read[name] = value
    for name in (b"A", b"B", b"AB", b"\xc3", b"BA"):
        assert property_text.find_property(raw, name) == read.get(name)


def test_of_several_values_the_last_one_counts_unless_it_is_empty() -> None:
    raw = b"A\x011\x02A\x012\x02B\x01x\x02A\x01\x02"
    assert property_text.decode_properties(raw) == {"A": "2", "B": "x"}
    assert property_text.find_property(raw, b"A") == b"2"


def test_an_empty_value_is_written_but_nobody_reads_it() -> None:
    assert property_text.encode_properties({"E": ""}) == b"E\x01\x02"
    assert property_text.decode_properties(b"E\x01\x02") == {}
    assert property_text.find_property(b"E\x01\x02", b"E") is None


def test_none_is_left_out() -> None:
    assert property_text.encode_properties({"N": None}) == b""


def test_bytes_that_are_not_utf8_are_replaced() -> None:
    assert property_text.decode_properties(b"A\x01\xff\x02\xc3\x01x") == {
        "A": "\ufffd",
        "\ufffd": "x",
    }


@pytest.mark.parametrize(
    "properties",
    [
        {"": "x"},
        {"a\x01b": "x"},
        {"a\x02b": "x"},
        {"a": "x\x02y"},
        {"a": "x\x02"},
        {"a": "\ud800"},
        {"a": "x\x01\x02"},  # as many of the one as of the other
        {"a\x01": "x", "b": "y\x02"},
    ],
)
def test_what_would_be_read_differently_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        property_text.encode_properties(properties)


def test_the_first_separator_ends_the_name_so_a_value_may_hold_more() -> None:
    assert property_text.decode_properties(property_text.encode_properties({"a": "1\x012"})) == {
        "a": "1\x012"
    }


def test_properties_have_room_for_32767_bytes() -> None:
    assert (
        len(property_text.encode_properties({"a": "x" * (property_text.LIMIT - 3)}))
        == property_text.LIMIT
        == 32767
    )
    with pytest.raises(InvalidInput, match="32768 bytes"):
        property_text.encode_properties({"a": "x" * (property_text.LIMIT - 2)})
    with pytest.raises(InvalidInput):
        property_text.encode_properties(
            {"a": "ä" * (property_text.LIMIT // 2)}
        )  # bytes count, not characters


@given(st.dictionaries(plain, values, max_size=5), st.booleans(), plain, values)
def test_an_appended_property_wins(
    properties: dict[str, str], cut: bool, name: str, value: str
) -> None:
    raw = property_text.encode_properties(properties)
    longer = property_text.append_property(raw[:-1] if cut else raw, name, value)
    assert property_text.decode_properties(longer) == properties | {name: value}
    assert property_text.find_property(longer, name.encode()) == value.encode()
    assert longer.startswith(raw)


def test_appending_past_the_limit_is_refused() -> None:
    full = property_text.encode_properties({"a": "x" * (property_text.LIMIT - 7)})
    assert len(property_text.append_property(full, "b", "y")) == property_text.LIMIT
    with pytest.raises(InvalidInput):
        property_text.append_property(full, "b", "yy")


def test_many_separators_take_linear_time() -> None:
    """A megabyte of either separator is read in one pass; a second pass each would take hours."""
    for filler in (b"\x01", b"\x02", b"\x02A\x01", b"A"):
        raw = filler * 1_000_000
        assert property_text.decode_properties(raw).keys() <= {"A"}
        assert property_text.find_property(raw, b"A") is None
