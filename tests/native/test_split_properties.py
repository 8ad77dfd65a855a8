"""The core splits properties as the pure function does."""

from array import array
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.split_properties import SplitProperties
from tests.native.both import alone, same

WANTED = (b"KEYS", b"TAGS")
LEFT_OUT = (b"KEYS", b"TAGS", b"WAIT")

words = st.sampled_from(["KEYS", "TAGS", "WAIT", "k", "n", "\x01", "\x02", "a", "", "ä"])
texts = st.lists(words, max_size=12).map(lambda found: "".join(found).encode())
names = st.sampled_from(["KEYS", "TAGS", "WAIT", "k", "n", *(f"n{at}" for at in range(20))])
values = st.text("abc", min_size=1, max_size=3)


def written(pairs: list[tuple[str, str]]) -> bytes:
    return "".join(f"{name}\x01{value}\x02" for name, value in pairs).encode()


usual = st.dictionaries(names, values).map(lambda found: written(list(found.items())))
repeated = st.lists(st.tuples(st.sampled_from("kn"), values), max_size=5).map(written)
many = st.lists(st.tuples(names, values), min_size=17, max_size=30).map(written)


def raw(numbers: list[int]) -> bytes:
    return array("q", numbers).tobytes()


def arguments(found: list[bytes]) -> tuple[bytes, bytes, bytes]:
    """Return the texts with a gap before each, as in records."""
    data, starts = b"", []
    for text in found:
        data += b"gap"
        starts.append(len(data))
        data += text
    ends = [start + len(text) for start, text in zip(starts, found, strict=True)]
    return data, raw(starts), raw(ends)


@settings(max_examples=300)
@given(st.lists(texts | usual | repeated | many, max_size=9), st.sampled_from([None, (), LEFT_OUT]))
def test_any_texts(found: list[bytes], left_out: tuple[bytes, ...] | None) -> None:
    same("split_properties", *arguments(found), WANTED, left_out)
    same("split_properties", *arguments([*found, *found]), (), left_out)


@settings(max_examples=150)
@given(st.binary(max_size=10), st.lists(st.integers(-3, 12), max_size=4), st.integers(0, 9))
def test_bounds_that_do_not_fit(data: bytes, numbers: list[int], cut: int) -> None:
    same("split_properties", data, raw(numbers), raw(numbers[::-1]), WANTED, LEFT_OUT)
    same("split_properties", data, raw(numbers)[cut:], raw(numbers), WANTED, LEFT_OUT)


@given(st.sampled_from([None, "text", bytearray(b"abc"), (None,), (b"KEYS", b"KEYS"), 5]))
def test_other_types_have_the_pure_outcome(odd: Any) -> None:
    given_ones = arguments([b"KEYS\x01a\x02"])
    same("split_properties", odd, *given_ones[1:], WANTED, LEFT_OUT)
    same("split_properties", *given_ones, odd, LEFT_OUT)
    same("split_properties", *given_ones, WANTED, odd)


@given(st.lists(usual, max_size=9))
def test_usual_texts_are_split_by_the_core_alone_and_as_they_are_read(found: list[bytes]) -> None:
    split = alone("split_properties", *arguments(found), WANTED, LEFT_OUT)
    assert isinstance(split, SplitProperties)
    assert split.others is not None
    firsts, names, values = split.others
    keys, several = (
        _listed(split.columns[0]),
        list(zip(_listed(names), _listed(values), strict=True)),
    )
    for at, text in enumerate(found):
        read = decode_properties(text)
        assert (keys[at] or None) == read.pop("KEYS", None)
        others = several[array("i", firsts)[at] : array("i", firsts)[at + 1]]
        assert others == [(n, v) for n, v in read.items() if n not in ("TAGS", "WAIT")]


def _listed(column: Any) -> list[str]:
    offsets = array("i", column.offsets)
    text = column.text.decode()
    return [text[start:end] for start, end in pairwise(offsets)]
